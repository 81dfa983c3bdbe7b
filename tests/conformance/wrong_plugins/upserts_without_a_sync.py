"""Rows that take the place of others are taken for a cache of them: their files are only closed."""

from __future__ import annotations

from dataclasses import dataclass

from crooked import CrookedFactory, CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[upsert]"
SAYS = "not synced: the bytes of warehouse/db/t/"


class Light(Writer):
    def complete(self) -> spi.WriteResult:
        if self._file is None:
            return spi.WriteResult.of(self._table, self._attempt, ())
        self._file.close()
        file = spi.StagedFile(self._path.name, self._rows, self._path.stat().st_size)
        return spi.WriteResult.of(self._table, self._attempt, (file,))


@dataclass(frozen=True)
class ByMode(CrookedFactory):
    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        kind = Light if context.mode is spi.WriteMode.UPSERT else Writer
        return kind(self.table, context.attempt)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("upserts-without-a-sync", factory=ByMode)
