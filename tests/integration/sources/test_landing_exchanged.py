"""While a disk is not mounted, its files are not deleted: the folder that it is mounted at is another one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

import landing
from laketier.config import LakeConfig
from laketier.connectors.files.places import Places
from laketier.rounds import LogRound, LogRoundSettings
from laketier.rounds.log_engine import LocalEngine
from laketier.rounds.ranges import OnExpired
from laketier.spi import OffsetsExpired, OffsetsRewritten, StorageError, TableLog
from laketier_verification.lakes import ids, lake_at
from landing import JSON, all_of, land, log_of, opened, rows

ANOTHER = "another one than its files were seen in"


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    return tmp_path / "zone"


@pytest.fixture
def config(tmp_path: Path) -> LakeConfig:
    return lake_at(tmp_path / "lake", "localfile", "db.t", lake__pipeline="tests.drop.t").config


@pytest.fixture
def tiered(config: LakeConfig, engine: LocalEngine) -> Callable[[TableLog], list[int]]:
    """A round that passes over what expired, and the rows of the lake after it."""

    def tiered(log: TableLog) -> list[int]:
        made = LogRound(log, config, LogRoundSettings(on_expired=OnExpired.SKIP))
        made.finish(engine.run(made.plan()))
        return ids(lake_at(Path(config.warehouse), "localfile", "db.t"))

    return tiered


def unmount(zone: Path) -> Callable[[], None]:
    """As it looks where the table's folder was a mount point. Returns what mounts it again."""
    away = zone.with_name("disk")
    (zone / "t").rename(away)
    (zone / "t").mkdir()

    def mount() -> None:
        (zone / "t").rename(zone.with_name("below"))
        away.rename(zone / "t")

    return mount


def test_files_behind_a_lost_mount_are_not_passed_over(zone: Path, tiered: Callable[[TableLog], list[int]]) -> None:
    land(zone, "a.json", 1)
    tiered(log_of(zone))
    land(zone, "b.json", 2)
    log_of(zone).bounds()  # taken, and not read
    mount = unmount(zone)
    for log in (log_of(zone), log_of(zone)):
        with pytest.raises(StorageError, match=rf"{ANOTHER}: 'b\.json' is not there"):
            tiered(log)
    land(zone, "c.json", 3)  # a producer that goes on, below the mount
    for log in (log_of(zone), log_of(zone)):
        with pytest.raises(StorageError, match=ANOTHER):
            tiered(log)
    mount()
    with pytest.raises(StorageError, match=rf"{ANOTHER}: 'c\.json' is not there"):
        tiered(log_of(zone))
    (zone.with_name("below") / "c.json").rename(zone / "t" / "c.json")
    assert tiered(log_of(zone)) == [1, 2, 3]


def test_a_mount_that_is_lost_while_a_task_reads_is_no_deleted_file(zone: Path) -> None:
    land(zone, "a.json", 1)
    log = log_of(zone)
    wanted = all_of(log)
    [split] = log.plan(wanted)
    mount = unmount(zone)
    with pytest.raises(StorageError, match=ANOTHER):
        list(log.read(split))
    mount()
    assert [row["id"] for row in rows(log, wanted)] == [1]


def test_a_folder_that_was_emptied_has_lost_its_files(zone: Path, tiered: Callable[[TableLog], list[int]]) -> None:
    land(zone, "a.json", 1)
    log_of(zone).bounds()
    (zone / "t" / "a.json").unlink()
    land(zone, "b.json", 2)
    assert tiered(log_of(zone)) == [2]


def test_a_folder_that_is_made_anew_for_each_delivery_is_read(
    zone: Path, tiered: Callable[[TableLog], list[int]]
) -> None:
    for number in range(3):
        land(zone, f"{number}.json", number)
        assert tiered(log_of(zone)) == list(range(number + 1))
        (zone / "t").rename(zone.with_name(f"old{number}"))
        (zone / "t").mkdir()


def test_who_made_the_folder_anew_says_that_its_files_were_deleted(
    zone: Path, tiered: Callable[[TableLog], list[int]]
) -> None:
    land(zone, "a.json", 1)
    log_of(zone).bounds()
    unmount(zone)
    with pytest.raises(StorageError, match=r"folders\.json: they count as deleted then"):
        log_of(zone).plan(all_of(log_of(zone), 0, 1))
    (zone / "_laketier" / "ledger" / "t" / "folders.json").unlink()
    with pytest.raises(OffsetsExpired):
        log_of(zone).plan(all_of(log_of(zone), 0, 1))
    land(zone, "b.json", 2)
    assert tiered(log_of(zone)) == [2]


def test_files_that_were_deleted_before_the_folder_was_another_one_are_gone(zone: Path) -> None:
    """Who cleans up what is in the lake, on a file system that numbers its folders anew at each mount: another lake
    table began with the files that were gone, and waited for them for good."""
    gone = land(zone, "a.json", 1)
    log_of(zone).bounds()
    gone.unlink()
    log_of(zone).bounds()
    mount = unmount(zone)
    land(zone, "b.json", 2)
    log = log_of(zone)
    at = log.bounds()["files"]
    assert (at.earliest, [row["id"] for row in rows(log, all_of(log, at.earliest))]) == (1, [2])
    mount()
    land(zone, "a.json", 1, at=3)  # the first one again, as from a backup: with another time it is another file
    with pytest.raises(OffsetsRewritten):
        log_of(zone).bounds()


def test_a_place_that_no_file_was_taken_from_counts_for_nothing() -> None:
    """Its driver was killed in between, and another one took its number in the folder of all files."""
    here, below = 1, 2
    places = Places().taking(here, 0).taking(below, 5).taking(here, 5)
    assert places.first_elsewhere(here) is None
    assert places.taking(below, 6).first_elsewhere(here) == 6


@pytest.mark.parametrize("is_taken", [True, False])
def test_who_may_only_read_a_ledger_reads_what_was_taken(is_taken: bool) -> None:
    """A union read of another user, of a ledger from before folders were noted."""
    with tempfile.TemporaryDirectory() as folder:  # not below pytest's own, which other users may not enter
        zone = Path(folder, "zone")
        land(zone, "a.json", 1)
        log_of(zone).bounds()
        (zone / "_laketier" / "ledger" / "t" / "folders.json").unlink()
        if not is_taken:
            land(zone, "b.json", 2)
        Path(folder).chmod(0o755)
        for path in (zone, *zone.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        # What is imported late may be root's alone: so another zone is read first.
        another = land(Path(folder, "another"), "a.json", 1).parents[1]
        read = "print(rows(log_of(Path(sys.argv[{}]))))"
        lines = ("import os, sys", "from pathlib import Path", "from landing import *", read.format(2))
        lines = (*lines, "os.getuid() or (os.setgroups([]), os.setuid(65534))", read.format(1))
        command = [sys.executable, "-c", "\n".join(lines), str(zone), str(another)]
        support = {"PYTHONPATH": str(Path(landing.__file__).parent)}
        ended = subprocess.run(command, env=os.environ | support, capture_output=True, text=True, check=False)
        for path in (zone, *(path for path in zone.rglob("*") if path.is_dir())):
            path.chmod(0o755)
    assert ended.stdout.count("[{'id': 1}]") == 1 + is_taken, ended.stderr
    assert is_taken or "permission denied" in ended.stderr.lower()


def test_a_copy_of_the_folder_is_as_good(zone: Path, tiered: Callable[[TableLog], list[int]]) -> None:
    """A disk that was replaced: what is missing in the copy was deleted."""
    land(zone, "a.json", 1)
    gone = land(zone, "b.json", 2)
    land(zone, "c.json", 3)
    log_of(zone).bounds()
    gone.unlink()
    (zone / "t").rename(zone.with_name("copy"))
    (zone / "t").mkdir()
    for name in ("a.json", "c.json"):
        (zone.with_name("copy") / name).rename(zone / "t" / name)
    assert tiered(log_of(zone)) == [1, 3]


def test_a_damaged_list_of_folders_is_made_anew(zone: Path, caplog: pytest.LogCaptureFixture) -> None:
    land(zone, "a.json", 1)
    log_of(zone).bounds()
    document = zone / "_laketier" / "ledger" / "t" / "folders.json"
    document.write_bytes(b"{")
    assert log_of(zone).bounds()["files"].earliest == 0
    assert "is made anew" in caplog.text
    assert b"places" in document.read_bytes()


def test_no_ledger_is_made_in_the_empty_folder_below_a_lost_mount(zone: Path) -> None:
    """With another id the table would count as another one, also once the disk is back."""
    land(zone, "a.json", 1)
    name = opened(zone / "t", one_table=True).open(".", JSON).table.table_id
    mount = unmount(zone)
    with pytest.raises(StorageError, match="holds no files and no ledger"):
        opened(zone / "t", one_table=True).open(".", JSON)
    assert list((zone / "t").iterdir()) == []
    mount()
    assert opened(zone / "t", one_table=True).open(".", JSON).table.table_id == name


def test_a_process_that_knows_a_ledger_makes_no_other_one_below_a_lost_mount(zone: Path) -> None:
    """Where the producer goes on to write there meanwhile."""
    land(zone, "a.json", 1)
    source = opened(zone / "t", one_table=True)
    name = source.open(".", JSON).table.table_id
    mount = unmount(zone)
    land(zone, "b.json", 2)
    with pytest.raises(StorageError, match=r"ledger of the landing zone is gone.*start this process again"):
        source.open(".", JSON)
    assert [path.name for path in (zone / "t").iterdir()] == ["b.json"]
    mount()
    assert source.open(".", JSON).table.table_id == name
    shutil.rmtree(zone / "t" / "_laketier")
    with pytest.raises(StorageError, match="ledger of the landing zone is gone"):
        source.open(".", JSON)
    assert opened(zone / "t", one_table=True).open(".", JSON).table.table_id != name, "who starts again begins anew"
