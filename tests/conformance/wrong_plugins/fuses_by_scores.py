"""Words count by their scores, and vectors by their distances."""

from __future__ import annotations

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot, _Asked

CAUGHT_BY = "test_search.py::test_words_and_a_vector"
SAYS = "fused of 30 each"


class Snapshot(LanceSearchSnapshot):
    def search(self, request: spi.SearchRequest) -> spi.SearchResult:
        query = request.query
        if not isinstance(query, spi.Hybrid):
            return super().search(request)
        schema = request.projected(self._schema, where=self._name)
        asked = _Asked()
        sums = dict(super()._text(query.text, query.depth, None, asked))
        for row, far in super()._nearest(query.nearest, query.depth, None, asked):
            sums[row] = sums.get(row, 0.0) + 1 / (1 + far)
        best = sorted(sums.items(), key=lambda each: (-each[1], each[0]))[: request.k]
        rows = self._ranked.rows(best, schema)
        return spi.SearchResult(rows=rows, snapshot_id=self.snapshot_id, explain=self._explain(asked))


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("fuses-by-scores", searcher=Searcher)
