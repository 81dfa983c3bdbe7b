"""Searches beside a clean-up of the version that they read."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import laketier
from laketier.spi import CorruptTable, Match, SearchRequest, SnapshotNotFound
from laketier_lance.options import LanceOptions
from laketier_lance.searcher import LanceSearcher, LanceSearchSnapshot

ROWS = 500
SCHEMA = pa.schema([("id", pa.int64()), ("doc", pa.string())])


def _rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table([pa.array(ids, pa.int64()), [f"snow on lake {each % 7}" for each in ids]], schema=SCHEMA)


@pytest.fixture
def location(tmp_path: Path) -> str:
    # A space, as the errors of Lance name paths among words.
    uri = str(tmp_path / "a lake" / "db" / "t.lance")
    lance.write_dataset(_rows(0, ROWS), uri, max_rows_per_file=50).create_scalar_index("doc", "INVERTED", name="i")
    return uri


def _superseded(location: str) -> None:
    """The rows are all in new files, and the old ones are gone."""
    lance.write_dataset(_rows(10_000, 50), location, mode="append")
    dataset = lance.dataset(location)
    dataset.delete(f"id = {dataset.to_table(['id'])['id'].to_pylist()[0]}")
    dataset.optimize.compact_files(materialize_deletions_threshold=0.0)
    lance.dataset(location).cleanup_old_versions(older_than=timedelta(0))


@dataclass(frozen=True)
class Outdated(LanceSearcher):
    """Its first look finds a version that is cleaned up before it is read."""

    first: list[int] = field(default_factory=list)

    def at(self, snapshot_id: int | None = None) -> LanceSearchSnapshot:
        return super().at(self.first.pop() if self.first else snapshot_id)


@dataclass(frozen=True)
class Outrun(LanceSearcher):
    """What somebody else does while a version is searched."""

    between: Callable[[str], None] = _superseded
    times: list[int] = field(default_factory=lambda: [1])

    def at(self, snapshot_id: int | None = None) -> LanceSearchSnapshot:
        opened = super().at(snapshot_id)
        if self.times[0]:
            self.times[0] -= 1
            self.between(self.location)
        return opened


@pytest.mark.parametrize("times", [1, 3])
def test_a_search_goes_on_at_the_newest_version(location: str, caplog: pytest.LogCaptureFixture, times: int) -> None:
    searcher = Outrun(location, "db.t", LanceOptions(), times=[times])
    with caplog.at_level(logging.WARNING, "laketier"):
        found = searcher.search("snow", k=10_000)
    assert found.rows.num_rows == lance.dataset(location).count_rows()
    assert found.snapshot_id == int(lance.dataset(location).version)
    assert [each.getMessage().count("was superseded while it was searched") for each in caplog.records] == [1] * times


def test_a_version_that_is_gone_before_it_is_open_is_looked_for_again(location: str) -> None:
    version = int(lance.dataset(location).version)
    _superseded(location)
    found = Outdated(location, "db.t", LanceOptions(), first=[version]).search("snow", k=10_000)
    assert found.rows.num_rows == lance.dataset(location).count_rows()


def test_a_search_that_is_always_outrun_ends(location: str) -> None:
    with pytest.raises(CorruptTable, match=r"a clean-up of old versions"):
        Outrun(location, "db.t", LanceOptions(), times=[1000]).search("snow")


def test_a_snapshot_that_was_named_is_told_to_be_gone(location: str) -> None:
    version = int(lance.dataset(location).version)
    told = rf"snapshot {version} was cleaned up while it was searched.*(index|data) file.*Search a newer snapshot"
    with pytest.raises(SnapshotNotFound, match=told):
        Outrun(location, "db.t", LanceOptions()).search("snow", snapshot_id=version)
    searcher = Outrun(location, "db.t", LanceOptions())
    with pytest.raises(SnapshotNotFound, match="was cleaned up while it was searched"):
        searcher.search_opened(searcher.at(), SearchRequest(query=Match("snow")))


def test_a_table_that_lacks_a_file_is_not_searched_for_ever(location: str) -> None:
    """The newest version is damaged: nothing to go on with. The file is named by its whole path."""
    (lost,) = (path for path in Path(location, "_indices").rglob("*_docs.lance"))
    lost.unlink()
    version = int(lance.dataset(location).version)
    for snapshot, says in ((None, "^"), (version, f"^.*snapshot {version} can't be searched, because ")):
        with pytest.raises(CorruptTable, match=says) as caught:
            LanceSearcher(location, "db.t", LanceOptions()).search("snow", snapshot_id=snapshot)
        assert caught.value.where == str(lost)
        assert "an index file of the snapshot is missing" in str(caught.value)
    for path in Path(location, "data").iterdir():
        path.unlink()
    for path in Path(location, "_indices").iterdir():
        path.rename(path.with_name(f"not-{path.name}"))
    with pytest.raises(CorruptTable) as caught:
        LanceSearcher(location, "db.t", LanceOptions()).search("snow")
    assert str(caught.value.where).startswith(location)


WRITER = """
import datetime, sys
import lance
sys.path.insert(0, sys.argv[2])
from test_lance_search_races import _rows
first = 10_000
while True:
    for _ in range(3):
        lance.write_dataset(_rows(first, 50), sys.argv[1], mode="append")
        first += 50
    dataset = lance.dataset(sys.argv[1])
    dataset.delete(f"id >= 10000 and id < {first - 900}")
    dataset.optimize.compact_files()
    dataset.optimize.optimize_indices()
    lance.dataset(sys.argv[1]).cleanup_old_versions(older_than=datetime.timedelta(0))
    print(first, flush=True)
"""


@pytest.mark.deep
def test_searches_beside_a_process_that_compacts_and_cleans_up(location: str, caplog: pytest.LogCaptureFixture) -> None:
    """Until 5 searches were outrun: each has all of its rows, and none fails."""
    warehouse = str(Path(location).parents[1])
    lake = {"lake.format": "lance", "lake.warehouse": warehouse, "lake.table": "db.t"}
    command = [sys.executable, "-c", WRITER, location, str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            outrun = 0
            while outrun < 5:
                assert writer.poll() is None
                caplog.clear()
                found = laketier.search(lake, "snow", k=10_000, columns=["id"])
                assert {*range(ROWS)} <= set(found.rows["id"].to_pylist())
                outrun += sum("was superseded" in each.getMessage() for each in caplog.records)
        finally:
            writer.kill()
