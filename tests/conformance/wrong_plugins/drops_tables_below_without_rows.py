"""A drop looks for the rows of others below the table. A table that has none yet is not seen, and goes with it."""

from __future__ import annotations

import shutil
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_places.py::test_a_table_below_another_one[made a moment ago]"
SAYS = "rows of a table below one that was dropped, or refused to be, are read"


class Catalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        folder = Path(self.load_table(path).location)
        if any(file.parent.parent != folder for file in folder.rglob("*.feather") if file.parent != folder):
            super().drop_table(path)
        else:
            shutil.rmtree(folder)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("drops-tables-below-without-rows", catalog=Catalog)
