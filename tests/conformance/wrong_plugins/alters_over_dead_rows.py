"""A change of the columns makes the next version of a table, and leaves the rows there that a round had put under its
number before it died."""

from __future__ import annotations

from collections.abc import Sequence

from sqlite_lake.catalog import Catalog, quoted
from sqlite_lake.plugin import SqlitePlugin, Storage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_unknown_outcomes.py::test_what_comes_between_an_error_and_the_replay"
SAYS = "a new column came, and the round was run again"
_HIDE = "SET _version = -1 - _version"


class SparingCatalog(Catalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        found = self.load_table(path)
        self._mark(path, f"{_HIDE} WHERE _version > {found.snapshot_id}")
        try:
            return super().alter_table(path, changes)
        finally:
            self._mark(path, f"{_HIDE} WHERE _version < 0")

    def _mark(self, path: spi.TablePath, how: str) -> None:
        with self.database.connected(write=True) as sql:
            sql.execute(f"UPDATE {quoted(str(path))} {how}")


class SparingStorage(Storage):
    def catalog(self) -> Catalog:
        return SparingCatalog(self.warehouse)


class SparingPlugin(SqlitePlugin):
    identifier = "alters-over-dead-rows"

    def create_storage(self, config: spi.LakeStorageConfig) -> Storage:
        return SparingStorage(kit.warehouse_folder(config.warehouse, format="sqlite", features=self.features))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return SparingPlugin()
