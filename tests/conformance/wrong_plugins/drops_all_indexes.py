"""An index is dropped with all others, as there was one in the author's tables."""

from __future__ import annotations

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_indexing.py::test_an_index_beside_another"
SAYS = "rows in and not in the indexes, after one of two was dropped"


class Indexer(LanceIndexer):
    def drop(self, name: str) -> None:
        others = [each.name for each in self.indexes() if each.name != name]
        super().drop(name)
        for other in others:
            super().drop(other)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("drops-all-indexes", indexer=Indexer)
