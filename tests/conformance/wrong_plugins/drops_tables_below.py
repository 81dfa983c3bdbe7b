"""Whatever lies in a table's folder goes with it, and be it somebody's warehouse."""

from __future__ import annotations

import shutil

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_places.py::test_a_table_below_another_one[with rows]"
SAYS = "rows of a table below one that was dropped, or refused to be"


class SweepingCatalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        shutil.rmtree(self.load_table(path).location)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("drops-tables-below", catalog=SweepingCatalog)
