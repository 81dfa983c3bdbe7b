"""What was built to be added to an index is published, though the index was replaced by one of other centres since:
nobody can add to it, or merge it, any more."""

from __future__ import annotations

from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_vector_answers.py::test_a_build_of_vectors_that_goes_on"
SAYS = "an append to a ivf-flat index that was replaced meanwhile: rows are added to it, and its segments are merged"


class Indexer(LanceIndexer):
    def _obstacle(self, dataset: Any, found: Any, plan: spi.IndexPlan, planned: set[str]) -> str:
        why = super()._obstacle(dataset, found, plan, planned)
        return "" if why.endswith("with another model") else why


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("adds-to-an-index-of-other-centres", indexer=Indexer)
