"""An index is told as it was when it was built: rows that came since are none of the rows that it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.dataset import indexes_of
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_tellings.py::test_what_an_index_tells"
SAYS = "its snapshot, beside the newest"


class Indexer(LanceIndexer):
    def indexes(self) -> Sequence[spi.IndexInfo]:
        now = self._open().version
        built = {
            each.name: max(s.dataset_version_at_last_update for s in each.segments) for each in indexes_of(self._open())
        }
        return [replace(each, snapshot_id=built.get(each.name, now)) for each in super().indexes()]


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("tells-indexes-as-of-their-build", indexer=Indexer)
