"""A build goes on from the files that an earlier one left, and looks whether they are there, not at what is in them."""

from __future__ import annotations

from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_record import PartRecord
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_indexing.py::test_a_build_after_one_whose_files_were_damaged"
SAYS = "a build after one whose file"


def taken_over(location: str, record: PartRecord) -> spi.BuiltIndexPart | None:
    return record.built


class Indexer(LanceIndexer):
    def resume(self, plan: spi.IndexPlan, max_parts: int) -> spi.IndexPlan:
        with patch("laketier_lance.indexer.taken_over", taken_over):
            return super().resume(plan, max_parts)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("takes-over-parts-by-their-names", indexer=Indexer)
