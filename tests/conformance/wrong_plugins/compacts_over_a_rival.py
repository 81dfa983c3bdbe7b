"""A compaction lost its race, and is committed all the same upon the newer state: in place of all rows that are there
by then."""

from __future__ import annotations

from compacting import merged
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl
from laketier.tiering import TieringRound

CAUGHT_BY = "test_maintenance_races.py::test_work_of_others_comes_upon_maintenance[compact]"
SAYS = "an append by another process came before step"


class Harness:
    def compact(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        result = merged(storage, table)
        TieringRound(storage.tiering_factory(table), token=None, mode=spi.WriteMode.OVERWRITE).commit([result])


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("compacts-over-a-rival")
