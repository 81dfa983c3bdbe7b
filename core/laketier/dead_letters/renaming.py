"""Renames a pipeline together with those of its dead letters and their replays, which are called after it.

Under a new name alone the next replay would take letters for new whose rows are in the table already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from laketier.config import LakeConfig
from laketier.dead_letters.failpoints import RENAME_BESIDE, RENAME_CLOSED
from laketier.dead_letters.records import REPLAY, lake_beside, replayed_table
from laketier.dead_letters.table import DEAD_LETTERS, dead_letter_table
from laketier.kit import failpoint
from laketier.registry import Lake, open_lake
from laketier.spi import LakeTieringFactory, TableNotFound
from laketier.tiering import pipelines
from laketier.tiering.renaming import Renaming, close_old_name, open_new_name, renaming


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
    """Let ``new`` go on in the lake table exactly where ``old`` ended. Driver. Killed at any point, neither name can
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
        LaketierError: As the lake raises it, and `laketier.tiering.pipelines.set_watermark`.
    """
    main, *others = _all_of(config, old, new)
    if not dry_run:
        (factory, renamed) = main
        close_old_name(factory, renamed.old, renamed.new)
        failpoint(RENAME_CLOSED)
        for beside, each in others:
            close_old_name(beside, each.old, each.new)
            open_new_name(beside, each.old, each.new)
        failpoint(RENAME_BESIDE)
        open_new_name(factory, renamed.old, renamed.new)
    return tuple(each for _, each in (main, *others))


def _all_of(config: LakeConfig, old: str, new: str) -> list[tuple[LakeTieringFactory[Any], RenamedPipeline]]:
    """All are looked at before the first is changed, so that a name that is taken beside stops nothing half-way."""
    lake = open_lake(config)
    table = lake.load_table()
    state, factory = lake.state(table), lake.tiering_factory(table)
    found = [(factory, RenamedPipeline(str(config.table), old, new, renaming(state, old, new)))]
    for beside, suffix in _beside(config, lake):
        try:
            info = beside.load_table()
        except TableNotFound:
            continue
        seen, names = beside.state(info), (old + suffix, new + suffix)
        last = pipelines.show(seen, names[0])
        if last is not None and (not last.forgotten or last.renamed_to is not None):
            told = RenamedPipeline(str(beside.config.table), *names, renaming(seen, *names))
            found.append((beside.tiering_factory(info), told))
    return found


def _beside(config: LakeConfig, lake: Lake) -> Iterator[tuple[Lake, str]]:
    yield lake_beside(config, dead_letter_table(config.table)), DEAD_LETTERS
    yield lake_beside(config, replayed_table(config.table)), REPLAY
    yield lake, REPLAY
