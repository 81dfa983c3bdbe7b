"""Keys are hashed by Python's own function, which is another one for texts in each process."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from local import tiering

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.storage import LocalFileTieringFactory
from laketier_localfile.writer import LocalFileWriter

CAUGHT_BY = "test_layout.py::test_buckets"
SAYS = "the buckets that rows of a split belong to"


@dataclass(frozen=True)
class Assigner(spi.BucketAssigner):
    keys: tuple[str, ...]
    count: int

    def assign(self, batch: pa.RecordBatch) -> pa.Array:
        rows = zip(*(batch[key].to_pylist() for key in self.keys), strict=True)
        return pa.array([hash(tuple(values)) % self.count for values in rows], pa.int32())


class Factory(LocalFileTieringFactory):
    def create_writer(self, context: spi.WriterInitContext) -> spi.LakeWriter[spi.WriteResult]:
        buckets = self.table.descriptor.buckets
        assigner = None if buckets is None else Assigner(buckets.keys, buckets.count)
        return LocalFileWriter(self.table, self.options, assigner, context)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return tiering("buckets-by-pythons-hash", Factory)
