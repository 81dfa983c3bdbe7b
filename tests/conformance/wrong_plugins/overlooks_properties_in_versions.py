"""The version of a table is made of its rows and columns. Properties are neither."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_versions.py::test_a_changed_property_gives_a_table_another_version"
SAYS = "a property of the table became 'one', and its version has the name that it had before"


class RowsCatalog(kit.ManifestCatalog):
    def table_version(self, path: spi.TablePath, known: str | None = None) -> str | None:
        try:
            manifests = self.table_type(Path(str(self.store(path).root))).manifests()
        except spi.TableError:
            return None
        head, settled = manifests.current()
        number, schema = head.number, manifests.metadata(head).schema
        while number and manifests.read(number).kind == "alter":
            if not manifests.metadata(manifests.read(number - 1)).schema.equals(schema):
                break
            number -= 1
        return f"{head.table_uuid}/{number}" if settled else None


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("overlooks-properties-in-versions", catalog=RowsCatalog)
