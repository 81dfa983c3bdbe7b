"""The keys of its tables are listed below the warehouse's folder and a slash, also where a bucket has no folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from in_a_bucket import options

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.plugin import LocalFilePlugin

CAUGHT_BY = "test_object_stores.py::test_a_whole_bucket"
SAYS = "the tables of a warehouse that is a bucket"
NAMED = "finds-no-tables-of-a-whole-bucket"


class Plugin(LocalFilePlugin):
    identifier: ClassVar[str] = NAMED

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        made = storage.catalog
        if config.warehouse.startswith("s3://") and config.warehouse.count("/") == 2:
            object.__setattr__(storage, "catalog", lambda: Listing(made()))
        return storage  # type: ignore[no-any-return]


class Listing:
    def __init__(self, right: spi.LakeCatalog) -> None:
        self._right = right

    def list_tables(self, _: str | None = None) -> list[spi.TablePath]:
        return []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._right, name)


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAMED, store)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Plugin()
