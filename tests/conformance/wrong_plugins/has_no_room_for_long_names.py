"""A table's folder has its name and a suffix. A folder's name has 255 letters."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_names_as_long_as_they_may_be"
SAYS = "a table is made whose name has 249 letters, the most that a name has"


class SuffixingCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        info = super().create_table(path, descriptor)
        (Path(info.location).parent / f"{path.table}.feather.lock").touch()
        (Path(info.location).parent / f"{path.table}.feather.lock").unlink()
        return info


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("has-no-room-for-long-names", catalog=SuffixingCatalog)
