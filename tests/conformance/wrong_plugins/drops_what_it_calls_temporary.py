"""A drop takes along what begins with the table's name and an underscore: the author's own temporary folders do."""

from __future__ import annotations

import shutil

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_drop_leaves_tables_of_similar_names"
SAYS = "the tables ['db.t_x', 'db.t'] alone are dropped"


class SweepingCatalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        location = self.location(path)
        super().drop_table(path)
        for other in location.parent.glob(f"{location.name}_*"):
            shutil.rmtree(other)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("drops-what-it-calls-temporary", catalog=SweepingCatalog)
