"""A change of columns that loses a race is tried again: with the schema that was made for the first try."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.kit.manifests.committer import next_manifest
from laketier.registry import hookimpl

CAUGHT_BY = "test_races.py::test_columns_added_side_by_side"
SAYS = "the columns that processes added side by side"
SECONDS = 60
"""Nobody waits as long: each process adds columns."""


class Insisting(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        table = self.table_type(self.location(path))
        state = table.open()
        altered = self._apply(replace(self.load_table(path), descriptor=state.metadata), changes)
        if altered.schema.equals(state.metadata.schema):
            return self.load_table(path)
        if _how_many_came_before(table.location) == 1:  # the first of all changes was alone
            loses_its_race(table, state.head.number)
        while True:
            at = state.head.number + 1
            manifest = next_manifest(
                state.head, commit_id=spi.new_attempt_id(), kind="alter", metadata=altered, metadata_at=at
            )
            with suppress(spi.Conflict):
                table.finish(state.manifests, state.manifests.append(manifest))
                return self.load_table(path)
            state = table.open()


def _how_many_came_before(location: Path) -> int:
    """Processes that change a table count themselves, each by a file."""
    for number in count():
        with suppress(FileExistsError):
            (location / f".change-{number}").touch(exist_ok=False)
            break
    return number


def loses_its_race(table: FeatherTable, seen: int) -> None:
    """Another process changes the table first."""
    over = time.monotonic() + SECONDS
    while table.open().head.number == seen and time.monotonic() < over:
        time.sleep(0.01)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("alters-what-it-saw-first", catalog=Insisting)
