"""Each split ends at the limit. What it reads is filtered afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from sieving import SievingSource, sieving

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_a_limit_counts_after_the_filters"
SAYS = "a filter that only the last rows of a split pass, id > 21015: expected 1, found 0"


class LimitedSource(SievingSource):
    def sieved(self, split: spi.LakeSplit, taken: spi.Leaf, limit: int | None) -> spi.LakeSplit:
        return replace(super().sieved(split, taken, limit), limit=limit)

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        whole = replace(split, payload=replace(split.payload, column=""))
        for batch in super().read(whole, schema):
            yield self.passing(split, batch if split.limit is None else batch.slice(0, split.limit))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return sieving("limits-before-it-filters", LimitedSource)
