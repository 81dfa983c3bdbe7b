"""The warehouse is kept in the module, where all parts find it: the one that was opened last."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.kit.local_store import LocalWarehouse
from laketier.kit.table_store import TableStore
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_two_warehouses_of_one_process"
SAYS = "the uuid of a table beside its namesake in another warehouse"

opened: list[Path] = []


class Global(kit.ManifestCatalog):
    def store(self, path: spi.TablePath) -> TableStore:
        return LocalWarehouse(opened[-1]).table(path.database, path.table)


class OnePlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        opened.append(Path(config.warehouse))
        return super().create_storage(config)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return OnePlugin("has-one-warehouse", catalog=Global)
