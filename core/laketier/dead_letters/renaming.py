"""Renames a pipeline together with those of its dead letters and their replays, which are called after it.

Under a new name alone the next replay would take letters for new whose rows are in the table already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from laketier.config import LakeConfig
from laketier.dead_letters.failpoints import RENAME_BESIDE, RENAME_CLOSED, RENAME_KEPT
from laketier.dead_letters.records import REPLAY, REPLAYED_SCHEMA, lake_beside, replayed_table
from laketier.dead_letters.table import DEAD_LETTERS, dead_letter_table
from laketier.kit import failpoint
from laketier.registry import Lake, open_lake
from laketier.spi import LakeTieringFactory, TableInfo, TableNotFound
from laketier.tables import prepare_table
from laketier.tiering import pipelines
from laketier.tiering.renaming import Renaming, close_old_name, keep_new_name, open_new_name, renaming


@dataclass(frozen=True)
class RenamedPipeline:
    """A pipeline that gets another name.

    Attributes:
        table: The table that has its watermark.
        old: The name of before.
        new: The name from now on.
        found: How far the renaming had come when it was looked at.
    """

    table: str
    old: str
    new: str
    found: Renaming


def rename_pipeline(config: LakeConfig, old: str, new: str, *, dry_run: bool = False) -> tuple[RenamedPipeline, ...]:
    """Let ``new`` go on in the lake table exactly where ``old`` ended. Driver. Killed at any point, at most ``old`` can
    publish until it is run again; and it may be run again at any time.

    Args:
        config: The lake table.
        old: The name of before. A worker that still has it is refused from here on.
        new: The name from now on, which has never published to the table, or was the one before ``old``.
        dry_run: Look only.

    Returns:
        What has another name now: the pipeline, then those of its dead letters and their replays, where it has some.

    Raises:
        WatermarkLost: The table does not know ``old``.
        TokenMismatch: ``new`` has a history of its own in one of the tables, or ``old`` was renamed to another one.
        ConfigError: A name that no pipeline can have.
        PluginBroken: The format keeps a part of a watermark alone.
        LaketierError: As the lake raises it, and `laketier.tiering.pipelines.set_watermark`.
    """
    lake = open_lake(config)
    table = lake.load_table()
    state, factory = lake.state(table), lake.tiering_factory(table)
    main = RenamedPipeline(str(config.table), old, new, renaming(state, old, new))
    # All are looked at before the first is changed, so that a name that is taken beside stops nothing half-way.
    others = list(_beside(config, lake, table, main, dry_run=dry_run))
    if not dry_run:
        keep_new_name(factory, old, new)
        failpoint(RENAME_KEPT)
        close_old_name(factory, old, new)
        failpoint(RENAME_CLOSED)
        for each in others:
            close_old_name(each.factory, *each.names, also_unpublished=True)
            open_new_name(each.factory, *each.names)
        failpoint(RENAME_BESIDE)
        open_new_name(factory, old, new)
    return (main, *(each.renamed for each in others if each.renamed is not None))


@dataclass(frozen=True)
class _Beside:
    """A pipeline of dead letters or replays. ``renamed``: None for one that never published. A replay under way may
    have one, so it is closed all the same."""

    factory: LakeTieringFactory[Any]
    names: tuple[str, str]
    renamed: RenamedPipeline | None


def _beside(
    config: LakeConfig, lake: Lake, table: TableInfo, main: RenamedPipeline, *, dry_run: bool
) -> Iterator[_Beside]:
    dead = lake_beside(config, dead_letter_table(config.table))
    replays = lake_beside(config, replayed_table(config.table))
    of_dead, of_replays = _loaded(dead), _loaded(replays)
    if of_dead is not None and of_replays is None and not dry_run and not table.descriptor.primary_key:
        # Its letters can be replayed. A first replay under way would make the table, and record there
        # under the old name what it takes.
        of_replays = prepare_table(replays, REPLAYED_SCHEMA)
    found = ((dead, of_dead, DEAD_LETTERS), (replays, of_replays, REPLAY), (lake, table, REPLAY))
    for each, info, suffix in found:
        if info is None:
            continue
        state, names = each.state(info), (main.old + suffix, main.new + suffix)
        last = pipelines.show(state, names[0])
        renamed = None
        if last is not None and (not last.forgotten or last.renamed_to is not None):
            renamed = RenamedPipeline(str(each.config.table), *names, renaming(state, *names))
        elif of_dead is None and of_replays is None:
            continue  # nothing can be replayed
        yield _Beside(each.tiering_factory(info), names, renamed)


def _loaded(lake: Lake) -> TableInfo | None:
    try:
        return lake.load_table()
    except TableNotFound:
        return None
