"""Who ends the old snapshots of one table ends those of all tables of its database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier_localfile.plugin import LocalFilePlugin

CAUGHT_BY = "test_neighbours.py::test_an_expiry_ends_no_snapshot_of_another_table"
SAYS = "snapshots of a table beside an expired one"


class AllPlugin(LocalFilePlugin):
    identifier = "expires-all-tables"

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        right = storage.maintenance

        class AllMaintenance(kit.ManifestMaintenance):
            def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
                own = Path(self.table.store.root)
                for path in storage.catalog().list_tables(own.parent.name):
                    other = storage.catalog().load_table(path)
                    if Path(other.location) != own:
                        right(other).expire(retention=retention, keep=keep, delete=delete)
                return super().expire(retention=retention, keep=keep, delete=delete)

        storage.maintenance = lambda table: AllMaintenance(right(table).table)
        return storage  # type: ignore[no-any-return]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return AllPlugin()
