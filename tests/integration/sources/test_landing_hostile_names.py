"""A landing zone in which somebody put links, names and kinds of files that were to lead the reader astray."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from laketier.spi import IncompatibleTable, LaketierError, OffsetsExpired, TableNotFound
from landing import JSON, all_of, ids, land, land_bytes, log_of, opened


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    (tmp_path / "zone" / "t").mkdir(parents=True)
    return tmp_path / "zone"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "only-the-service-may-read"
    path.write_bytes(b'{"id": 666}\n')
    path.chmod(0o600)
    return path


def test_a_link_discloses_nothing_and_a_loop_multiplies_nothing(
    zone: Path, secret: Path, caplog: pytest.LogCaptureFixture
) -> None:
    land(zone, "a.json", 1)
    (zone / "t" / "b.json").symlink_to(secret)
    (zone / "t" / "loop").symlink_to(zone / "t")
    (zone / "t" / "out").symlink_to(secret.parent)
    (zone / "t" / "nowhere.json").symlink_to("/no/such")
    log = log_of(zone)
    assert ids(log) == [1]
    log.bounds()
    for name in ("b.json", "loop", "out", "nowhere.json"):
        assert caplog.text.count(f"t: {name} is left out: it is a symbolic link") == 1


def test_links_that_stay_within_are_followed_when_asked_and_each_file_is_read_once(
    zone: Path, secret: Path, caplog: pytest.LogCaptureFixture
) -> None:
    land(zone, "a.json", 1)
    (zone / "_store").mkdir()
    land(zone, "../_store/b.json", 2)
    (zone / "t" / "store").symlink_to("../_store")
    (zone / "t" / "again").symlink_to("../_store")
    (zone / "t" / "same.json").symlink_to("a.json")
    (zone / "t" / "loop").symlink_to(".")
    (zone / "t" / "out").symlink_to(secret.parent)
    (zone / "t" / "out.json").symlink_to(secret)
    (zone / "u").symlink_to("t")
    (zone / "v").symlink_to(secret.parent)
    assert sorted(ids(log_of(zone, follow_links=True))) == [1, 2]
    assert "out.json is left out: it is a link that leads out of the landing zone" in caplog.text
    assert "same.json is left out: it is the file a.json by another name" in caplog.text
    assert "loop is left out: it is a link to a folder that is looked at already" in caplog.text
    assert list(opened(zone, follow_links=True).source.list_tables()) == ["t", "u"]


def test_a_table_that_is_a_link_is_no_table(zone: Path, secret: Path, caplog: pytest.LogCaptureFixture) -> None:
    (zone / "u").symlink_to(secret.parent)
    source = opened(zone)
    assert list(source.source.list_tables()) == ["t"]
    assert "drop: u is left out: it is a symbolic link" in caplog.text
    with pytest.raises(TableNotFound, match="symbolic link"):
        source.open("u", JSON)


def test_a_file_that_is_swapped_for_a_link_is_not_read(zone: Path, secret: Path) -> None:
    path = land(zone, "a.json", 1)
    found = path.stat()
    log = log_of(zone)
    splits = log.plan(all_of(log))
    path.unlink()
    secret.write_bytes(b'{"id": 6}\n')
    os.utime(secret, ns=(found.st_atime_ns, found.st_mtime_ns))
    path.symlink_to(secret)
    assert secret.stat().st_size == found.st_size
    with pytest.raises(OffsetsExpired):
        list(log.read(splits[0]))
    path.unlink()
    path.parent.rename(zone / "_away")
    path.parent.symlink_to(secret.parent)
    with pytest.raises(LaketierError):
        list(log.read(splits[0]))


def test_a_link_that_comes_and_goes_while_files_are_opened_discloses_nothing(zone: Path, secret: Path) -> None:
    path = land(zone, "a.json", 1)
    log = log_of(zone)
    [split] = log.plan(all_of(log))
    link, file = zone / "t" / ".link", zone / "t" / ".file"
    shutil.copy2(path, file)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            link.symlink_to(secret)
            link.replace(path)
            shutil.copy2(file, file.with_suffix(".new"))
            file.with_suffix(".new").replace(path)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: set[int] = set()
    try:
        for _ in range(100):
            try:
                seen.update(row["id"] for batch in log.read(split) for row in batch.to_pylist())
            except LaketierError:
                continue
    finally:
        stop.set()
        swapping.join()
    assert seen <= {1}


@pytest.fixture
def odd(zone: Path) -> Iterator[Path]:
    with socket.socket(socket.AF_UNIX) as server:
        os.mkfifo(zone / "t" / "pipe.json")
        here = os.getcwd()
        os.chdir(zone / "t")  # the path of a socket has 107 bytes at most
        try:
            server.bind("socket.json")
        finally:
            os.chdir(here)
        yield zone


def test_pipes_sockets_and_folders_that_look_like_files_stop_nothing(
    odd: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (odd / "t" / "folder.json").mkdir()
    land(odd, "folder.json/b.json", 2)
    land(odd, "a.json", 1)
    for name in ("c.json.tmp", "d.json._COPYING_", "e.part", "f.partial", "g.json~", "h.json.crdownload"):
        land_bytes(odd, name, b"not whole")
    assert sorted(ids(log_of(odd))) == [1, 2]
    assert "pipe.json is left out: it is a pipe" in caplog.text
    assert "socket.json is left out: it is a socket" in caplog.text


HOSTILE = [
    b"new\nline.json",
    b"\x1b[31mred.json",
    b"%2e%2e%2fpercent.json",
    b"hash#mark?.json",
    b"back\\slash.json",
    b"a" * 250 + b".json",
    "\u202egnp.json".encode(),
    b" blanks .json",
    b"'\"`$(x).json",
]


def test_any_name_that_is_text_is_read_and_no_other_stops_the_rest(
    zone: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = os.fsencode(zone / "t")
    for number, name in enumerate(HOSTILE):
        Path(os.fsdecode(folder + b"/" + name)).write_bytes(b'{"id": %d}\n' % number)
    Path(os.fsdecode(folder + b"/not-\xff\x1b[2J-text.json")).write_bytes(b'{"id": 666}\n')
    os.mkdir(folder + b"/folder-\xfe")
    Path(os.fsdecode(folder + b"/folder-\xfe/x.json")).write_bytes(b'{"id": 666}\n')
    log = log_of(zone)
    assert sorted(ids(log)) == list(range(len(HOSTILE)))
    assert sorted(ids(log_of(zone))) == list(range(len(HOSTILE))), "by another process"
    assert r"not-\xff\x1b[2J-text.json is left out: its name is not UTF-8" in "\n".join(caplog.messages)
    assert r"folder-\xfe is left out: its name is not UTF-8" in "\n".join(caplog.messages)
    assert "\x1b" not in caplog.text


def test_a_table_whose_name_is_not_text_stops_no_other(zone: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.mkdir(os.fsencode(zone) + b"/\xff")
    source = opened(zone)
    assert list(source.source.list_tables()) == ["t"]
    assert r"drop: \xff is left out: its name is not UTF-8" in "\n".join(caplog.messages)
    with pytest.raises(TableNotFound):
        source.open(os.fsdecode(b"\xff"), JSON)


def test_a_file_with_several_names_is_one_file(zone: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    path = land(zone, "b.json", 1)
    (zone / "t" / "a.json").hardlink_to(path)
    assert ids(log_of(zone)) == [1]
    assert "b.json is left out: it is the file a.json by another name" in caplog.text
    log = log_of(zone)
    (zone / "t" / "a.json").rename(zone / "t" / "c.json")
    path.unlink()
    assert log.bounds()["files"].latest == 1, "nothing new: the file was renamed"
    assert "1 files were renamed after they were taken: a.json is c.json now" in caplog.text
    assert ids(log) == [1]


def test_another_file_of_the_same_name_size_and_time_is_told(zone: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = land(zone, "a.json", 1)
    log = log_of(zone)
    log.bounds()
    found = path.stat()
    land_bytes(zone, "../_new/a.json", b'{"id": 2}\n')
    os.utime(zone / "_new" / "a.json", ns=(found.st_atime_ns, found.st_mtime_ns))
    (zone / "_new" / "a.json").rename(path)
    log.bounds()
    log.bounds()
    assert caplog.text.count("1 files were replaced by others of the same size and time") == 1
    assert "a.json" in caplog.text


def test_a_ledger_that_leads_out_of_its_folder_is_not_followed(zone: Path, secret: Path) -> None:
    from laketier.connectors.files.files import LandedFile, LandedPart
    from laketier.spi import LogSplit

    log = log_of(zone)
    found = secret.stat()
    for path in ("../../only-the-service-may-read", str(secret)):
        payload = LandedPart(LandedFile(path, found.st_size, found.st_mtime_ns), path)
        split = LogSplit(bucket="files", start=0, end=1, payload=payload)
        bad: list[object] = []
        try:
            assert [batch.num_rows for batch in log.read(split, on_bad_record=bad.append)] == []
        except LaketierError:
            continue
        assert bad


@pytest.mark.parametrize("mark", ["_delta_log", "inner/_spark_metadata", "metadata/v1.metadata.json"])
def test_a_table_of_others_is_not_taken_as_its_files(zone: Path, mark: str) -> None:
    """Files that its log does not name would give rows that were deleted, or twice."""
    land(zone, "a.json", 1)
    log = log_of(zone)
    path = zone / "t" / mark
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch() if mark.endswith(".json") else path.mkdir()
    with pytest.raises(IncompatibleTable, match=f"a table of its own.*{mark}"):
        log.bounds()
    shutil.rmtree(zone / "t" / mark.split("/")[0])
    assert ids(log) == [1]
