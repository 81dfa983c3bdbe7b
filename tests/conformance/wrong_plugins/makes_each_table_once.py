"""A catalog makes a table that it made before no second time: it takes it for there, also where another catalog dropped
it since."""

from __future__ import annotations

from functools import cached_property

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_two_catalogs_that_stay_open"
SAYS = "whether the table that is made anew is the dropped one, for a catalog that was open when another one dropped"


class RememberingCatalog(kit.ManifestCatalog):
    @cached_property
    def _made_before(self) -> dict[spi.TablePath, spi.TableInfo]:
        return {}

    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        if path not in self._made_before:
            self._made_before[path] = super().create_table(path, descriptor)
        return self._made_before[path]

    def drop_table(self, path: spi.TablePath) -> None:
        super().drop_table(path)
        self._made_before.pop(path, None)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("makes-each-table-once", catalog=RememberingCatalog)
