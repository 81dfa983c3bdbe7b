"""A data file is synced while its writer still has the end of it in memory."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.kit import durable
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = "the table can't be read"


class Hasty(Writer):
    def complete(self) -> spi.WriteResult:
        if self._file is None:
            return spi.WriteResult.of(self._table, self._attempt, ())
        durable.fsync_file(self._path)
        durable.fsync_directory(self._path.parent)
        self._file.close()
        file = spi.StagedFile(self._path.name, self._rows, self._path.stat().st_size)
        return spi.WriteResult.of(self._table, self._attempt, (file,))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("syncs-before-it-closes", writer=Hasty)
