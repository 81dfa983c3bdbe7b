"""Where a filter is pushed, the page that follows is the first one again: OR stands beside the place to go on from, and
binds less than AND."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES
from sieving import SievedFile, SievingSource

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_a_filter_loses_no_row_and_adds_none[gt]"
SAYS = "a split is read to its end: expected 20000 batches at most"


class PagingSource(SievingSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        assert isinstance(split.payload, SievedFile)
        while True:
            page = list(super().read(split, schema))
            yield from page
            if not split.payload.column or not sum(map(len, page)):
                return


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    features = {**FEATURES, spi.Feature.FILTER_PUSHDOWN: spi.FULL}
    return CrookedPlugin("reads-its-first-page-again", features, source=PagingSource)
