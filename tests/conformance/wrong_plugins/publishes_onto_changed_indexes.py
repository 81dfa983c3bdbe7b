"""It is not looked at whether the index is still the one that was planned for."""

from __future__ import annotations

from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_changes.py::test_an_index_that_changed_since_its_plan[replaced-append]"
SAYS = "of an index that was replaced before it was published"


class Indexer(LanceIndexer):
    def _obstacle(self, *given: Any) -> str:
        found = super()._obstacle(*given)
        return "" if "index" in found else found


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("publishes-onto-changed-indexes", indexer=Indexer)
