"""The format of `crooked` with a property of tables that its writers read, and a harness that names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from laketier import spi

ROWS = "acme.rows-per-file"


class PropertiedHarness:
    table_properties: ClassVar[Mapping[str, Sequence[str]]] = {ROWS: ("1", "2")}

    def set_property(self, storage: spi.LakeStorage, table: spi.TableInfo, key: str, value: str | None) -> None:
        catalog = storage.catalog()
        before = catalog.load_table(table.path).descriptor.properties.get(key)
        if before != value:
            catalog.alter_table(table.path, [spi.SetProperty(key, value, before)])
