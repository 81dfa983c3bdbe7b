"""How many candidates a walk keeps where nobody says."""

from __future__ import annotations

import pytest

from laketier_lance.graph_walk import as_lance_takes_it, enough_candidates


@pytest.mark.parametrize(("rows", "kept"), [(0, 320), (10_000, 320), (40_000, 640), (160_000, 1280), (10**9, 1280)])
def test_more_rows_need_more_candidates(rows: int, kept: int) -> None:
    assert enough_candidates(rows) == kept
    walk = {"ef": None, "by_rows": enough_candidates(rows)}
    assert as_lance_takes_it(walk, 10) == {"k": 10, "ef": kept}, "Lance is told nothing else"
    assert as_lance_takes_it(walk | {"ef": 50}, 10)["ef"] == 50
    assert as_lance_takes_it(walk, 1000)["ef"] == 1500
