"""A format that calls some of its refusals of rows `UnstorableRows`, and others not: a service stops at those."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl


class TwoWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        super().write(batch)
        if "name" in batch.schema.names and "row 3" in batch["name"].to_pylist():
            raise spi.IncompatibleData("a text is refused", why="it is row 3", fix="Write another one.")


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("two-refusals", writer=TwoWriter)
