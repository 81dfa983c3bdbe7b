"""A table has a document that says over how many folders it is spread. It is a whole number, its checksum is right, and
a place is found by dividing by it."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests.document import decode, encode, whole
from laketier.registry import hookimpl

CAUGHT_BY = "test_damage.py::test_each_value_is_another"
SAYS = "no error of laketier's, but ZeroDivisionError"


class SpreadCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        info = super().create_table(path, descriptor)
        notes = Path(info.location, "notes.json")
        if not notes.exists():
            notes.write_bytes(encode({"version": 1, "folders": 4}))
        return info

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        info = super().load_table(path)
        notes = Path(info.location, "notes.json")
        if notes.exists():
            self.folder = len(str(path)) % decode(notes.read_bytes(), notes, lambda body, _: whole(body["folders"]))
        return info


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("divides-by-its-notes", catalog=SpreadCatalog)
