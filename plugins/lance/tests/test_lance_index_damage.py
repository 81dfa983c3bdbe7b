"""An index whose files another program deleted: who has it sees it, and can replace or drop it."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from laketier.maintenance.index_builds import build_here, build_index, spec_of
from laketier.maintenance.index_policy import IndexPolicy, decide_index
from laketier.spi import CorruptTable, IndexKind, IndexMode, IndexSpec, Nearest
from laketier_lance.indexer import LanceIndexer
from laketier_lance.options import LanceOptions
from laketier_lance.searcher import LanceSearcher

SPECS = (
    IndexSpec("words", "doc", IndexKind.INVERTED, {"stem": False}),
    IndexSpec("near", "v", IndexKind.IVF_FLAT, {"num_partitions": 2, "metric": "cosine"}),
)


@pytest.fixture
def location(tmp_path: Path) -> str:
    uri = str(tmp_path / "db" / "t.lance")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.random.default_rng(1).random(2400, np.float32)), 4)
    lance.write_dataset(pa.table({"doc": [f"snow {each}" for each in range(600)], "v": vectors}), uri)
    for spec in SPECS:
        build_index(LanceIndexer(uri, LanceOptions()), spec, IndexMode.CREATE, max_parts=1, build=build_here)
    for folder in Path(uri, "_indices").iterdir():
        shutil.rmtree(folder)
    return uri


def test_it_is_listed_with_its_damage(location: str) -> None:
    near, words = LanceIndexer(location, LanceOptions()).indexes()
    assert (near.name, words.name) == ("near", "words")
    for each in (near, words):
        assert each.damage is not None
        assert "_indices/" in each.damage
        assert decide_index(each, 0, IndexPolicy(spec_of(each)), 0).step.value == "rebuild"
        assert each.rows_indexed == 600
    assert (spec_of(near).options["metric"], spec_of(words).options["stem"]) == ("cosine", False)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_it_is_replaced(location: str, spec: IndexSpec) -> None:
    query = "snow" if spec.column == "doc" else Nearest((1.0, 0.0, 0.0, 0.0))
    found = LanceSearcher(location, "t", LanceOptions())
    with pytest.raises(CorruptTable, match="`laketier index list` names the index: replace or drop it"):
        found.search(query)
    indexer = LanceIndexer(location, LanceOptions())
    info = build_index(indexer, spec, IndexMode.REPLACE, max_parts=1, build=build_here)
    assert (info.damage, info.rows_indexed) == (None, 600)
    assert found.search(query, k=3).rows.num_rows == 3


def test_it_is_dropped(location: str) -> None:
    indexer = LanceIndexer(location, LanceOptions())
    for spec in SPECS:
        indexer.drop(spec.name)
    assert indexer.indexes() == []
    assert LanceSearcher(location, "t", LanceOptions()).search(Nearest((1.0, 0.0, 0.0, 0.0)), k=3).rows.num_rows == 3
