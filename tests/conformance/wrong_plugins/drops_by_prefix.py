"""A drop deletes all folders that begin with the table's name, to catch those that a crashed drop left beside it."""

from __future__ import annotations

import shutil

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_drop_leaves_tables_of_similar_names"
SAYS = "alone are dropped"


class SweepingCatalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        super().drop_table(path)
        for folder in (self.warehouse / path.database).glob(f"{path.table}*"):
            shutil.rmtree(folder)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("drops-by-prefix", catalog=SweepingCatalog)
