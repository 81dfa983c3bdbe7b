"""How many candidates a walk through a graph of vectors keeps (ef)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from laketier.spi import ConfigError, Nearest
from laketier_lance.index_settings import has_graph, kind_of

_ENOUGH, _MOST = 320, 1280
_ROWS = 10_000
"""Kept where a query does not say: 320 for up to 10,000 rows, 640 for 40,000, 1,280 for 160,000 and more. Lance keeps
one and a half times what it is asked for, which finds 0.04 less of the nearest in one graph of 10,000 than in eight.
With these, one graph and eight of up to 40,000 rows differ by less than 0.01; larger ones were not tried.

The rows of the largest segment count, and not those of the index: each segment has graphs of its own, each is walked
with as many candidates, and the best of all walks are taken. Of 40,000 rows in eight segments, each walk of 320 is
through 5,000, and finds as many of the nearest as one of 640 through all. Partitions do not count, though each has a
graph of its own: they are of any size, and walks through four found no more than one walk did."""
_BY_ROWS = "by_rows"


def enough_candidates(rows: int) -> int:
    """How many candidates a walk keeps where a query does not say, by the rows of the segment that it is through."""
    return min(_MOST, max(_ENOUGH, math.isqrt(_ENOUGH**2 * rows // _ROWS)))


def _largest_segment(index: Any, rows: Mapping[int, int]) -> int:
    """Its rows. Lance takes one number of candidates for the walks through all segments."""
    return max((sum(rows.get(int(each), 0) for each in one.fragment_ids) for one in index.segments), default=0)


def kept_candidates(
    query: Nearest, k: int, index: Any, rows: Mapping[int, int], unused: str, where: str
) -> dict[str, Any]:
    """What `as_lance_takes_it` is told of the walk; an ``ef`` of None leaves the choice to it. ``index``: the one that
    answers, None where none does, because of ``unused``. ``rows``: of each fragment by its id. Raises `ConfigError`
    where a query names ``ef``, and no graph is walked."""
    kind = None if index is None else kind_of(index)
    if has_graph(kind):
        if query.ef is not None and query.ef < k:
            raise ConfigError(
                f"ef is {query.ef}, and {k} rows are wanted",
                where=where,
                why="a walk finds no more rows than the candidates that it keeps",
                fix=f"Give an ef of {k} or more, or leave it out.",
            )
        return {"ef": query.ef, _BY_ROWS: enough_candidates(_largest_segment(index, rows))}
    if query.ef is not None:
        raise ConfigError(
            f"ef = {query.ef} has no effect",
            where=where,
            why=unused or f"index {index.name!r} is of kind {kind or index.index_type}, which has no graph",
            fix="Leave ef out, or build an index of kind `ivf-hnsw-flat`, `ivf-hnsw-pq` or `ivf-hnsw-sq`.",
        )
    return {}


def as_lance_takes_it(nearest: dict[str, Any], limit: int) -> dict[str, Any]:
    """The question for ``limit`` rows. Lance refuses an ``ef`` below the number of rows that it fetches."""
    asked = nearest | {"k": limit}
    least = asked.pop(_BY_ROWS, _ENOUGH)
    if "ef" in asked:
        given, fetched = asked["ef"], limit * nearest.get("refine_factor", 1)
        asked["ef"] = max(least, fetched + fetched // 2) if given is None else max(given, fetched)
    return asked
