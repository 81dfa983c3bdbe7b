"""Whoever lists the tables of a warehouse loads each of them, so one that is damaged hides all the others."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_damage.py::test_each_file_is_written_over"
SAYS = "and the tables of the warehouse are listed"


class LoadingCatalog(kit.ManifestCatalog):
    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        return [self.load_table(path).path for path in super().list_tables(database)]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-only-whole-tables", catalog=LoadingCatalog)
