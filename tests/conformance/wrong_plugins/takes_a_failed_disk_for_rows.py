"""Whatever goes wrong while rows are written is told as rows that can't be stored. A service then takes the rows aside
that it had when the disk failed."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_effect_of_a_round_fails"
SAYS = "the round ended in UnstorableRows, and that was not to be seen: expected an error of the storage"


class BlamingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        try:
            super().write(batch)
        except (OSError, spi.StorageError) as error:
            raise spi.UnstorableRows("rows can't be stored", why=str(error), fix="Leave them out.") from error

    def complete(self) -> spi.WriteResult:
        try:
            return super().complete()
        except (OSError, spi.StorageError) as error:
            raise spi.UnstorableRows("rows can't be stored", why=str(error), fix="Leave them out.") from error


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-a-failed-disk-for-rows", writer=BlamingWriter)
