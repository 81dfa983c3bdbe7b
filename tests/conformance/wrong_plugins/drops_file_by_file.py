"""A table is dropped one file after the other."""

from __future__ import annotations

import shutil

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[drop]"
SAYS = "drop, killed before step"


class SlowCatalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        self.load_table(path)
        for file in sorted(self.location(path).glob("*.feather")):
            file.unlink()
        shutil.rmtree(self.location(path))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("drops-file-by-file", catalog=SlowCatalog)
