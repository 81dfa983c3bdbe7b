"""Whether a column suits an index is left to the tasks."""

from __future__ import annotations

from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_columns.py::test_an_index_of_each_type"
SAYS = "is built, as its plan was not refused"


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        with patch("laketier_lance.indexer.check_column", lambda *_: None):
            return super().plan(spec, max_parts, mode)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("plans-indexes-of-any-column", indexer=Indexer)
