"""A format in whose database an empty text is a null, which no key may be: a task refuses it."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl


class NonEmptyWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        for name in self._table.descriptor.primary_key:
            if "" in batch[name].to_pylist():
                raise spi.UnstorableRows("an empty key", why="it is a null", fix="Write another one.")
        super().write(batch)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("no-empty-keys", writer=NonEmptyWriter)
