"""A table that can't be looked at is one that is not there: a disk error reads as an invitation to make it anew."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_a_table_fails[rows]"
SAYS = "and who asks for rows, gets no error: expected {'columns': ['id', 'name', 'value']"


class HastyCatalog(kit.ManifestCatalog):
    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        try:
            return super().load_table(path)
        except OSError as error:
            raise spi.TableNotFound("there is no such table", where=str(path)) from error


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-errors-for-absence", catalog=HastyCatalog)
