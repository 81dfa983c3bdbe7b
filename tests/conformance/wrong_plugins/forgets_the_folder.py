"""A data file is synced, and the folder that holds its name is not."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.kit import durable
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_nothing_is_torn"
SAYS = "the table can't be read"


class Forgetful(Writer):
    def complete(self) -> spi.WriteResult:
        if self._file is None:
            return spi.WriteResult.of(self._table, self._attempt, ())
        self._file.close()
        durable.fsync_file(self._path)
        file = spi.StagedFile(self._path.name, self._rows, self._path.stat().st_size)
        return spi.WriteResult.of(self._table, self._attempt, (file,))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("forgets-the-folder", writer=Forgetful)
