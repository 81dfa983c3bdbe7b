"""A sync that fails is tried again. The second one has nothing to do, and so it succeeds."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.kit import durable
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_effect_of_a_round_fails"
SAYS = "the round was answered, then the power was cut"


class Stubborn(Writer):
    def complete(self) -> spi.WriteResult:
        if self._file is None:
            return spi.WriteResult.of(self._table, self._attempt, ())
        self._file.close()
        try:
            durable.fsync_file(self._path)
        except OSError:
            durable.fsync_file(self._path)
        durable.fsync_directory(self._path.parent)
        file = spi.StagedFile(self._path.name, self._rows, self._path.stat().st_size)
        return spi.WriteResult.of(self._table, self._attempt, (file,))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("swallows-a-failed-sync", writer=Stubborn)
