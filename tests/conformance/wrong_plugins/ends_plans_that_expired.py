"""A file that an expiry took away has no rows any more. Who reads a plan of before is told nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from local import reading

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_expiry.py::test_what_is_kept_is_whole_and_the_rest_is_refused[3]"
SAYS = "which has expired since, and was not refused"


class QuietSource(LocalFileSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            yield from super().read(split, schema)
        except (spi.SnapshotNotFound, spi.CorruptTable):
            if not self.table.manifests().head()[0].earliest:
                raise


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("ends-plans-that-expired", QuietSource)
