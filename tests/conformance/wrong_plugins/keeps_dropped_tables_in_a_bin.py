"""A table that is dropped is first copied to a bin of the warehouse, for whoever wants it back. Nobody empties it."""

from __future__ import annotations

import shutil
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_places.py::test_a_drop_leaves_no_file"
SAYS = "files that are left in a warehouse beside the folder of a table, after it was dropped: expected 0 rows, found"


class KeepingCatalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        info = self.load_table(path)
        folder = Path(info.location)
        shutil.copytree(folder, folder.parent.parent / ".bin" / info.table_uuid)
        super().drop_table(path)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-dropped-tables-in-a-bin", catalog=KeepingCatalog)
