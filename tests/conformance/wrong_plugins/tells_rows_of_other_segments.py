"""The rows of the segments are told in the order of their number, and not of the segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_tellings.py::test_the_rows_of_each_segment"
SAYS = "the rows of each segment of an index"


class Indexer(LanceIndexer):
    def indexes(self) -> Sequence[spi.IndexInfo]:
        return [replace(each, segment_rows=tuple(sorted(each.segment_rows))) for each in super().indexes()]


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("tells-rows-of-other-segments", indexer=Indexer)
