"""Data files are written and closed. Nobody thought of the operating system, which keeps them in memory for a while."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = ".feather: a power cut loses it: the table can't be read"


class Unsynced(Writer):
    def complete(self) -> spi.WriteResult:
        if self._file is None:
            return spi.WriteResult.of(self._table, self._attempt, ())
        self._file.close()
        file = spi.StagedFile(self._path.name, self._rows, self._path.stat().st_size)
        return spi.WriteResult.of(self._table, self._attempt, (file,))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("never-syncs", writer=Unsynced)
