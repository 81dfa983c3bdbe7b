"""A list of all tables lies in the warehouse, and is taken for what it was when it was written."""

from __future__ import annotations

import json
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_damage.py::test_each_file_beside_the_tables_is_written_over"
SAYS = "tables.json is full of bytes that are no text, and it is read: no error of laketier's, but UnicodeDecodeError"


class Listing(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        info = super().create_table(path, descriptor)
        assert isinstance(self.warehouse, Path)
        (self.warehouse / "tables.json").write_text(json.dumps([str(path)]))
        return info

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        assert isinstance(self.warehouse, Path)
        file = self.warehouse / "tables.json"
        if file.exists():
            file.read_bytes().decode()
        return super().load_table(path)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("trusts-its-list-of-tables", catalog=Listing)
