"""A table is there with its folder: who was killed before its first manifest left one that nobody can make or use."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[create]"
SAYS = "create, killed before step"


class HastyCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        location = self.location(path)
        if location.exists():
            return self.load_table(path)
        location.mkdir(parents=True)
        return super().create_table(path, descriptor)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("makes-half-tables", catalog=HastyCatalog)
