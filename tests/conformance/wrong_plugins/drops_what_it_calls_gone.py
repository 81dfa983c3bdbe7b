"""Whatever ends a drop is told as a table that is not there. Whoever drops it anew is done then, and its rows stay."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[drop]"
SAYS = "it ended in TableNotFound, and the table is there"


class HastyCatalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        self.load_table(path)
        try:
            super().drop_table(path)
        except Exception as error:
            raise spi.TableNotFound("the table does not exist", where=str(path), fix="Check its name.") from error


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("drops-what-it-calls-gone", catalog=HastyCatalog)
