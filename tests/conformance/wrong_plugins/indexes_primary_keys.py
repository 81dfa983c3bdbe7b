"""Primary keys have an index in the database, which takes 2,704 bytes, as it compresses them, and fails the task."""

from __future__ import annotations

import zlib

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert_keys.py::test_keys_that_no_index_holds"
SAYS = "one of 4096 letters: a task stages it: expected no error, found StorageError"
MOST = 2_000


class IndexingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        for key in self._table.descriptor.primary_key:
            for value in batch.column(key).to_pylist():
                if len(zlib.compress(str(value).encode())) > MOST:
                    raise spi.StorageError("an index row exceeds the maximum", where=self._table.location)
        super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("indexes-primary-keys", writer=IndexingWriter)
