"""A drop deletes the files of a table, and leaves its folders for whoever may use them again."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.local_folder import LocalFolder
from laketier.registry import hookimpl

CAUGHT_BY = "test_places.py::test_a_drop_leaves_no_folder"
SAYS = "empty folders that are left where a table was that nobody shared, after it was dropped"


class Catalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        folder = Path(self.load_table(path).location)
        super().drop_table(path)
        LocalFolder(folder.parent).make_folders(folder.name)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("leaves-empty-folders", catalog=Catalog)
