"""A commit that is killed while its table is dropped leaves no name that nobody can use any more."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import laketier_delta.altering
from laketier.spi import AddColumn, CorruptTable, Passthrough, TableNotFound
from laketier_delta.leftover import lone_entry, take_back
from laketier_delta.location import Location


def _left(lake, support) -> Path:
    """As delta-rs leaves it: it makes the folders of its entry anew, and was killed then."""
    lake.create()
    lake.epoch(0)
    entry = Path(lake.uri, "_delta_log", f"{1:020}.json")
    kept = entry.read_bytes()
    records = Path(lake.uri, "_laketier")
    shutil.copytree(records, Path(lake.warehouse, "records"))
    lake.storage.catalog().drop_table(support.PATH)
    entry.parent.mkdir(parents=True)
    entry.write_bytes(kept)
    Path(f"{entry}#1").write_bytes(kept[:10])
    shutil.move(Path(lake.warehouse, "records"), records)
    return entry


def _location(lake) -> Location:
    return Location(lake.uri, Passthrough())


def test_the_name_is_free_after_it(lake, support):
    entry = _left(lake, support)
    with pytest.raises(TableNotFound, match="one entry of it is left"):
        lake.storage.catalog().load_table(support.PATH)
    lake.create()
    assert not entry.exists()
    assert (support.values(lake.read()), lake.committer().open().watermark("p")) == ([], None)
    lake.epoch(0)
    assert support.values(lake.read()) == [0]


def test_it_can_be_dropped_once_more(lake, support):
    _left(lake, support)
    lake.storage.catalog().drop_table(support.PATH)
    assert list(Path(lake.uri).parent.iterdir()) == []


@pytest.mark.parametrize("lost", ["the first entry", "all entries but one", "files and the first of three entries"])
def test_what_may_be_damage_is_left_as_it_is(lake, lost):
    """With files, or with two entries, somebody may still get rows out of it."""
    lake.create()
    for epoch in range(2):
        lake.epoch(epoch)
    log = Path(lake.uri, "_delta_log")
    entries = sorted(log.glob("*.json"))
    gone = entries[:-1] if lost == "all entries but one" else entries[:1]
    files = [*Path(lake.uri).glob("*.parquet")] if lost.startswith("files") else []
    for each in [*gone, *files]:
        each.unlink()
    with pytest.raises(CorruptTable, match="the Delta log can't be read"):
        lake.create()
    assert sorted(log.glob("*.json")) == [each for each in entries if each not in gone]


def test_a_first_version_is_a_table(lake):
    lake.create()
    assert lone_entry(_location(lake)) is None


def test_an_entry_of_a_table_that_was_made_meanwhile_stays(lake, support):
    _left(lake, support)
    seen = lone_entry(_location(lake))
    assert seen is not None
    lake.create()  # by somebody else, who then commits as often
    for epoch in range(2):
        lake.epoch(epoch)
    take_back(seen)
    assert support.values(lake.read()) == [0, 1]
    assert not list(seen.path.parent.glob("*.left-*"))


def test_a_change_of_a_table_that_is_dropped_meanwhile_finds_none(lake, support, monkeypatch):
    lake.create()
    lake.epoch(0)

    def dropped(_: object, __: object) -> None:
        lake.storage.catalog().drop_table(support.PATH)

    monkeypatch.setattr(laketier_delta.altering, "make_durable", dropped)
    with pytest.raises(TableNotFound, match="dropped meanwhile"):
        lake.storage.catalog().alter_table(support.PATH, [AddColumn(pa.field("more", pa.int64()))])
    monkeypatch.undo()
    lake.create()
    assert support.values(lake.read()) == []
