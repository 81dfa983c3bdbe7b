"""A commit puts the rows of its attempts into the table of a database. What was staged stays until it is collected, and
nothing tells that it was shown already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlite_lake.catalog import State
from sqlite_lake.plugin import Committer, Factory, SqlitePlugin, Storage

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_old_results.py::test_newer_rows_took_its_place"
SAYS = "5 are missing: [(0, 'new 0')"


class KeepingCommitter(Committer):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        paths = [Path(self.table.location) / file.path for result in results for file in result.files]
        staged = {path: path.read_bytes() for path in paths if path.exists()}
        done = super().publish(state, results, watermark)
        for path, rows in staged.items():
            path.write_bytes(rows)
        return done

    def _refuse_named(self, sql: Any, state: State, results: Sequence[spi.WriteResult]) -> None:
        pass


class KeepingFactory(Factory):
    def create_committer(self, context: spi.CommitterInitContext) -> Committer:
        made = super().create_committer(context)
        return KeepingCommitter(made.catalog, made.table, made.context)


class KeepingStorage(Storage):
    def tiering_factory(self, table: spi.TableInfo) -> Factory:
        return KeepingFactory(self.catalog(), table)


class KeepingPlugin(SqlitePlugin):
    identifier = "shows-an-attempt-again"

    def create_storage(self, config: spi.LakeStorageConfig) -> Storage:
        return KeepingStorage(super().create_storage(config).warehouse)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return KeepingPlugin()
