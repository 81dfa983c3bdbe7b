"""A format whose files have the rows of a task from the last to the first, and that drops no table: of one that is not
there it says so."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, Writer

from laketier import kit, spi
from laketier.registry import hookimpl

NAME = "turned"
DECLARED = {**FEATURES, spi.Feature.DROP_TABLE: spi.unsupported("this one keeps all tables")}


class TurningWriter(Writer):
    """An order of rows is promised by nobody."""

    def write(self, batch: pa.RecordBatch) -> None:
        super().write(batch.take(pa.array(range(len(batch) - 1, -1, -1), pa.int64())))


class KeepingCatalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        self.load_table(path)
        spi.require(NAME, DECLARED, spi.Feature.DROP_TABLE)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin(NAME, DECLARED, writer=TurningWriter, catalog=KeepingCatalog)
