"""A commit stores the number of the new version, and forgets to say of which table. The first commit of a new table
puts all others back to a small number, and their next rows take the place of those that have it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlite_lake.plugin import Committer, Factory, SqlitePlugin, Storage

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_neighbours.py::test_tables_take_turns"
SAYS = "rows of db.two after 5 commits to three tables in turn"


class CountingCommitter(Committer):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        done = super().publish(state, results, watermark)
        with self.catalog.database.connected(write=True) as sql:
            sql.execute("UPDATE laketier_table SET version = ?", (done.snapshot_id,))
        return done


class CountingFactory(Factory):
    def create_committer(self, context: spi.CommitterInitContext) -> Committer:
        made = super().create_committer(context)
        return CountingCommitter(made.catalog, made.table, made.context)


class CountingStorage(Storage):
    def tiering_factory(self, table: spi.TableInfo) -> Factory:
        return CountingFactory(self.catalog(), table)


class CountingPlugin(SqlitePlugin):
    identifier = "counts-versions-of-all-tables"

    def create_storage(self, config: spi.LakeStorageConfig) -> Storage:
        return CountingStorage(super().create_storage(config).warehouse)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CountingPlugin()
