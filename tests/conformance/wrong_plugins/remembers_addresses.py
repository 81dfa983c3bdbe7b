"""The index knows rows by file and number. Those that a compaction moved are lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from overlaid import MOST, OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_units import fragment_of
from laketier_lance.indexer import LanceIndexer
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_index_answers.py::test_answers_after_a_compaction"
SAYS = "an index of files that were compacted"


class Indexer(LanceIndexer):
    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        files = [fragment_of(unit) for part in plan.parts for unit in part.units]
        Path(self._location, "addresses").write_text(json.dumps(files))
        return super().publish(plan, built)


class Snapshot(LanceSearchSnapshot):
    def _text(self, query: Any, k: int, condition: str | None, asked: Any) -> Rows:
        files = json.loads(Path(self._dataset.uri, "addresses").read_text())
        covered = {int(n) for index in self._indexes for segment in index.segments for n in segment.fragment_ids}
        found = super()._text(query, MOST, condition, asked)
        return [row for row in found if row[0] >> 32 in files or row[0] >> 32 not in covered][:k]


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("remembers-addresses", indexer=Indexer, searcher=Searcher)
