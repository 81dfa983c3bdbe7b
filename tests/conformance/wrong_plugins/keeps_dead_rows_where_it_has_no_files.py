"""Rows of a round that died before its watermark are removed by the next round that writes rows. One without rows takes
the number under which they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlite_lake.plugin import Committer, Factory, SqlitePlugin, State, Storage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_unknown_outcomes.py::test_what_comes_between_an_error_and_the_replay"
SAYS = "another pipeline's epoch without rows came, and the round was run again: expected 10 rows, found 15"


@dataclass(frozen=True)
class SparingCommitter(Committer):
    def _upsert(self, state: State, results: Sequence[spi.WriteResult]) -> None:
        if any(result.files for result in results):
            super()._upsert(state, results)
            return
        with self.catalog.database.connected(write=True) as sql:
            self._unchanged(sql, state)
            claim = (self._claim(state), state.table_uuid)
            sql.execute("UPDATE laketier_table SET claim = ? WHERE uuid = ?", claim)


class SparingFactory(Factory):
    def create_committer(self, context: spi.CommitterInitContext) -> Committer:
        spi.require_mode("sqlite", SqlitePlugin.features, context.mode)
        return SparingCommitter(self.catalog, self.table, context)


class SparingStorage(Storage):
    def tiering_factory(self, table: spi.TableInfo) -> Factory:
        return SparingFactory(self.catalog(), table)


class SparingPlugin(SqlitePlugin):
    identifier = "keeps-dead-rows-where-it-has-no-files"

    def create_storage(self, config: spi.LakeStorageConfig) -> Storage:
        return SparingStorage(kit.warehouse_folder(config.warehouse, format="sqlite", features=self.features))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return SparingPlugin()
