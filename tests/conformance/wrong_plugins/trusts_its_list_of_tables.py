"""A list of all tables lies in the warehouse, says which there are, and is taken for what it was when written."""

from __future__ import annotations

import json
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_damage.py::test_each_file_beside_the_tables_is_written_over"
SAYS = "tables.json is with one bit of another value, and it is read: an error that says that there is no table"


class Listing(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        self._list.parent.mkdir(parents=True, exist_ok=True)
        self._list.write_text(json.dumps(sorted({*self._listed(), str(path)})))
        return super().create_table(path, descriptor)

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        if str(path) not in self._listed():
            raise spi.TableNotFound("there is no such table", where=str(path))
        return super().load_table(path)

    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        listed = self._listed()
        return [path for path in super().list_tables(database) if str(path) in listed]

    def drop_table(self, path: spi.TablePath) -> None:
        super().drop_table(path)
        self._list.write_text(json.dumps([each for each in self._listed() if each != str(path)]))

    @property
    def _list(self) -> Path:
        assert isinstance(self.warehouse, Path)
        return self.warehouse / "tables.json"

    def _listed(self) -> list[str]:
        return json.loads(self._list.read_bytes().decode()) if self._list.exists() else []


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("trusts-its-list-of-tables", catalog=Listing)
