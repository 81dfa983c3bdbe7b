"""A database's rows are committed in a transaction, and their watermark in the next: declared to be exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlite_lake.plugin import Committer, Factory, SqlitePlugin, State, Storage, attempt_of, check_staged

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_round_is_killed"
SAYS = "openat lake.sqlite-journal: the replay ended as 'published', and 50 rows were there"


@dataclass(frozen=True)
class TwoTransactions(Committer):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, State)
        check_staged(self.folder, results, attempt_of=attempt_of, where=self.table.location)
        self._upsert(state, results)
        with self.catalog.database.connected(write=True) as sql:
            version = self._unchanged(sql, state) + 1
            if watermark is not None:
                row = (state.table_uuid, watermark.token.pipeline, watermark.carried_by(version).to_json())
                sql.execute("INSERT OR REPLACE INTO laketier_watermark VALUES (?, ?, ?)", row)
            commit = (state.table_uuid, self.context.commit_id, version)
            sql.execute("INSERT INTO laketier_commit VALUES (?, ?, ?)", commit)
            sql.execute("UPDATE laketier_table SET version = ? WHERE uuid = ?", (version, state.table_uuid))
        self.discard(results)
        files = [file for result in results for file in result.files]
        rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
        return spi.LakeCommitResult(snapshot_id=version, rows=rows, files=len(files), bytes=size)


class TwoTransactionsFactory(Factory):
    def create_committer(self, context: spi.CommitterInitContext) -> Committer:
        return TwoTransactions(self.catalog, self.table, context)


class TwoTransactionsStorage(Storage):
    def tiering_factory(self, table: spi.TableInfo) -> Factory:
        return TwoTransactionsFactory(self.catalog(), table)


class TwoTransactionsPlugin(SqlitePlugin):
    identifier = "commits-in-a-second-transaction"
    delivery = spi.DeliveryLevel.EXACTLY_ONCE

    def create_storage(self, config: spi.LakeStorageConfig) -> Storage:
        return TwoTransactionsStorage(Path(config.warehouse).absolute())


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return TwoTransactionsPlugin()
