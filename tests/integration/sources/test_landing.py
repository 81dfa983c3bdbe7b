"""A landing zone as a log: what is taken, in which order, and what becomes of files that change."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from laketier.registry import open_log_source
from laketier.spi import ConfigError, FeatureNotSupported, OffsetsExpired, OffsetsRewritten, StorageError, TableNotFound
from laketier.spi.clocks import shifted
from landing import JSON, all_of, ids, land, land_bytes, log_of, opened


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    (tmp_path / "zone" / "t").mkdir(parents=True)
    return tmp_path / "zone"


def test_files_are_taken_by_time_then_name_and_keep_their_place(zone: Path) -> None:
    for name, at in (("b", 20), ("a", 20), ("c", 10)):
        land(zone, f"{name}.json", ord(name), at=at)
    log = log_of(zone)
    assert log.bounds()["files"].latest == 3
    land(zone, "sub/d.json", ord("d"), at=30)
    bounds = log.bounds()["files"]
    assert (bounds.earliest, bounds.latest, bounds.latest_at) == (0, 4, 30_000)
    assert "".join(map(chr, ids(log))) == "cabd"
    assert "".join(map(chr, ids(log_of(zone), all_of(log, 1, 3)))) == "ab", "the same for another driver"


def test_by_name_when_asked(zone: Path) -> None:
    land(zone, "b.json", 2, at=10)
    land(zone, "a.json", 1, at=20)
    assert ids(log_of(zone, {**JSON, "order": "name"})) == [1, 2]


def test_hidden_and_young_files_are_left(zone: Path) -> None:
    land(zone, "old.json", 1, at=1000)
    land(zone, "young.json", 2)
    for name in ("_x.json", ".x.json", "_tmp/x.json"):
        land(zone, name, 3, at=1000)
    log = log_of(zone, {**JSON, "min-age": 3600})
    assert ids(log) == [1]
    assert ids(log_of(zone)) == [1, 2]


def test_a_driver_that_is_behind_says_why_it_waits(zone: Path, caplog: pytest.LogCaptureFixture) -> None:
    land(zone, "a.json", 1)
    log = log_of(zone, {**JSON, "min-age": 1})
    with shifted(-10 * 86_400_000):
        for _ in range(3):
            assert log.bounds()["files"].latest == 0
    assert len([record for record in caplog.records if "clock is behind" in record.message]) == 1


def test_late_files_are_taken_last_and_told(zone: Path, caplog: pytest.LogCaptureFixture) -> None:
    land(zone, "b.json", 2, at=20)
    log = log_of(zone)
    log.bounds()
    land(zone, "a.json", 1, at=10)
    with caplog.at_level(logging.INFO):
        assert ids(log) == [2, 1]
    assert [r.levelname for r in caplog.records if "late" in r.message and "a.json" in r.message] == ["INFO"]


def test_a_rewritten_file_is_noticed_and_never_read(zone: Path, caplog: pytest.LogCaptureFixture) -> None:
    land(zone, "a.json", 1, at=10)
    log = log_of(zone)
    wanted = all_of(log)
    split = log.plan(wanted)[0]
    land(zone, "a.json", 1, 2, at=20)
    with pytest.raises(OffsetsRewritten) as caught:
        log.bounds()
    for part in ("a.json", "10 bytes", "20", "1970-01-01T00:00:10", "1970-01-01T00:00:20", "new name"):
        assert part in str(caught.value)
    tolerant = log_of(zone, {**JSON, "on-rewritten": "ignore"})
    caplog.clear()
    assert tolerant.bounds() == tolerant.bounds()
    assert [r.levelname for r in caplog.records] == ["WARNING"], "once"
    for reads in (lambda: tolerant.plan(wanted), lambda: list(tolerant.read(split))):
        with pytest.raises(OffsetsRewritten, match=r"a\.json"):
            reads()
    land(zone, "a.json", 1, at=10)
    assert ids(log, wanted) == [1], "put back as it was"


def test_a_file_rewritten_while_it_is_read_fails_the_task(zone: Path) -> None:
    land(zone, "a.json", 1, at=10)
    log = log_of(zone)
    batches = log.read(log.plan(all_of(log))[0])
    next(batches)
    land(zone, "a.json", 7, at=20)
    with pytest.raises(OffsetsRewritten):
        list(batches)


def test_lines_that_a_cut_in_the_midst_of_a_read_left_are_nobodys(zone: Path) -> None:
    """The cut file ends within a line. That line was never written, so the change is told, and no bad record."""
    path = land_bytes(zone, "a.json", b'{"id": 1%s}\n' % (b" " * 1000) * 10_000)  # more than is read at once
    log = log_of(zone)
    batches = log.read(log.plan(all_of(log))[0])
    next(batches)
    os.truncate(path, path.stat().st_size - 5)
    with pytest.raises(OffsetsRewritten, match=r"a\.json"):
        list(batches)


def test_a_file_that_is_gone_is_told_and_earliest_moves(zone: Path) -> None:
    for number in range(4):
        land(zone, f"{number}.json", number, at=number + 1)
    log = log_of(zone)
    wanted = all_of(log)
    splits = log.plan(wanted)
    (zone / "t" / "0.json").unlink()
    (zone / "t" / "1.json").unlink()
    assert log.bounds()["files"].earliest == 2
    with pytest.raises(OffsetsExpired, match=r"0\.json.*offset 0.*1 more up to offset 1"):
        log.plan(wanted)
    with pytest.raises(OffsetsExpired, match=r"1\.json"):
        list(log.read(splits[1]))
    assert ids(log, all_of(log, 2)) == [2, 3]
    for number in (2, 3):
        (zone / "t" / f"{number}.json").unlink()
    assert (log.bounds()["files"].earliest, log.bounds()["files"].latest) == (4, 4)


def test_the_zone_itself_may_be_the_table_and_the_ledger_elsewhere(zone: Path, tmp_path: Path) -> None:
    land(zone, "a.json", 1)
    source = opened(zone / "t", one_table=True, ledger=str(tmp_path / "ledger"))
    assert list(source.source.list_tables()) == ["."]
    (zone / "t").chmod(0o555)
    try:
        assert ids(source.open(".", JSON)) == [1]
    finally:
        (zone / "t").chmod(0o755)
    assert [path.name for path in (zone / "t").iterdir()] == ["a.json"]
    with pytest.raises(ConfigError, match="its own ledger"):
        opened(zone, one_table=True, ledger=str(tmp_path / "ledger")).open(".", JSON)


def test_where_no_ledger_can_be_made_another_place_is_asked_for(zone: Path) -> None:
    (zone / "_laketier").write_text("in the way")
    with pytest.raises(StorageError, match=r"options\.ledger"):
        log_of(zone)


def test_a_zone_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no-such"):
        opened(tmp_path / "no-such").source.list_tables()


def test_tables_are_the_folders_that_are_not_hidden(zone: Path) -> None:
    for name in ("b", ".git", "_laketier"):
        (zone / name).mkdir()
    (zone / "file").touch()
    source = opened(zone)
    assert list(source.source.list_tables()) == ["b", "t"]
    for name in ("c", "", ".", "..", "_laketier", ".git", "file", "b/..", "../zone"):
        with pytest.raises(TableNotFound):
            source.open(name, JSON)
    assert not (zone / "_laketier" / "ledger").exists(), "nothing is made for what is no table"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "options.path is missing"),
        ({"path": "/x", "legder": "/y"}, "Did you mean 'options.ledger'"),
    ],
)
def test_bad_options_of_the_source(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_log_source("files", options, name="drop", origin="service.yaml")


@pytest.mark.parametrize("path", ["s3://user:geheim@bucket/x?region=eu-west-1", "gopher://user:geheim@host/x"])
def test_what_cannot_hold_a_ledger_is_refused_without_its_secrets(path: str) -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        open_log_source("files", {"path": path}, name="drop", origin="service.yaml")
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        ({"format": "json"}, "read.columns.<name>"),
        ({"format": "csv"}, "read.columns.<name>"),
        ({"format": "parquet"}, "no file yet"),
        ({"format": "xml"}, "not one of parquet, json"),
        ({"format": "json", "columns.id": "itn64"}, "Did you mean 'int64'"),
        ({"format": "json", "columns.m": "map<string, int64>"}, r"read\.columns\.m: JSON can't be read as map"),
        ({"format": "csv", "columns.m": "list<int64>"}, r"read\.columns\.m: CSV can't be read as list"),
        ({**JSON, "min-age": -1}, r"read\.min-age = -1\.0 is too small"),
        ({**JSON, "split-bytes": 0}, r"read\.split-bytes = 0 is too small"),
        ({**JSON, "max-expansion": 0}, r"read\.max-expansion = 0 is too small"),
        ({"format": "csv", "header": False}, "no columns"),
        ({"format": "csv", "columns.a": "int8", "delimiter": "::"}, "one ASCII character"),
    ],
)
def test_bad_options_of_a_table(zone: Path, read: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        log_of(zone, read)
