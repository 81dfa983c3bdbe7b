"""A column is added by the library, whose commit goes well in a store where the table was dropped meanwhile, or where
another one is: nobody looks afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laketier import spi
from laketier.registry import hookimpl
from laketier_delta.catalog import DeltaCatalog
from laketier_delta.plugin import DeltaPlugin

CAUGHT_BY = "test_dropped.py::test_a_drop_before_each_request_of_a_change_in_a_store[recreated]"
SAYS = "the table that was made anew is another one by now"


class Catalog(DeltaCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        from deltalake import Field

        handle: Any = self.load_table(path).handle
        added = [each.field for each in changes if isinstance(each, spi.AddColumn)]
        handle.alter.add_columns([Field.from_arrow(field) for field in added])
        return self.load_table(path)


class Plugin(DeltaPlugin):
    def __init__(self) -> None:
        self.identifier = "leaves-its-change-to-the-library"  # type: ignore[misc]

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        storage.catalog = lambda: Catalog(storage._warehouse, storage._options)
        return storage  # type: ignore[no-any-return]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Plugin()
