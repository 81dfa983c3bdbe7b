"""Snapshots end and their files go: nothing goes that a snapshot, a reader or a pipeline may still need."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from typer.testing import CliRunner

from laketier.cli.app import app
from laketier.kit import failpoints
from laketier.kit.local_folder import LocalFolder
from laketier.kit.local_store import LocalStore
from laketier.kit.manifests import expiry
from laketier.spi import (
    ConfigError,
    Conflict,
    CorruptTable,
    OffsetsExpired,
    Passthrough,
    ScanRequest,
    SnapshotNotFound,
    TableNotFound,
    WriteMode,
)
from laketier_localfile.layout import SUPERSEDED, superseded_path
from laketier_localfile.options import LocalFileOptions

DAY = 24 * 3600 * 1000
EXPIRES = f"""
import sys
from laketier.registry import configure, open_lake
lake = open_lake(configure({{"lake.format": "localfile", "lake.warehouse": sys.argv[1], "lake.table": sys.argv[2]}}))
maintenance = lake.storage.maintenance(lake.load_table())
print("begun", flush=True)
while True:
    maintenance.expire(retention=-{DAY}, keep=2, delete=True)
"""


@pytest.fixture
def table(make_table: Callable[..., Any]) -> Any:
    return make_table(options=LocalFileOptions(fold_files=2))


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """From now on the storage says that so many days have passed, or the clock of this host does."""

    def pass_by(days: float, *, host: float = 0) -> None:
        now, of_host = LocalStore.now, expiry.host_time
        monkeypatch.setattr(LocalStore, "now", lambda self: now(self) + int(days * DAY))
        monkeypatch.setattr(expiry, "host_time", lambda: of_host() + int(host * DAY))

    return pass_by


def expire(table: Any, *, days: float = 7, keep: int = 1, delete: bool = True) -> Any:
    return table.storage.maintenance(table.info).expire(retention=int(days * DAY), keep=keep, delete=delete)


def superseded(table: Any) -> set[str]:
    return {path.name for path in (table.location / SUPERSEDED).glob("*")}


def taken_away(table: Any, *, until: int) -> set[str]:
    """By the manifests up to that number."""
    paths = [path for number in range(1, until + 1) for path in table.log.read(number).removed]
    return {superseded_path(path).rpartition("/")[2] for path in paths}


def ids_of(epochs: range) -> list[int]:
    return [epoch * 1000 + i for epoch in epochs for i in range(4)]


def readable(table: Any) -> dict[int, list[int]]:
    """The ids of each snapshot that is offered."""
    history = table.storage.history(table.info).snapshots(1000)
    return {each.snapshot_id: table.read_ids(snapshot_id=each.snapshot_id) for each in history}


@contextmanager
def at(point: str, do: Callable[[], Any]) -> Iterator[None]:
    """The first time."""
    done: list[str] = []

    def observe(name: str) -> None:
        if name == point and not done:
            done.append(name)
            do()

    with failpoints.observed(observe):
        yield
    assert done, point


# -- what goes, and what stays -----------------------------------------------------------------------------------------


def test_folded_files_go_with_the_snapshots_that_needed_them(table: Any, later: Callable[..., None]) -> None:
    for epoch in range(9):
        table.round(epoch)
    before, files = readable(table), superseded(table)
    assert files == taken_away(table, until=9)
    assert expire(table).files == (), "they are young"
    assert superseded(table) == files
    later(8)
    found = expire(table, keep=3)
    assert (found.earliest, found.newest) == (7, 9)
    assert superseded(table) == files - taken_away(table, until=7) != set()
    assert {file.path.rpartition("/")[2] for file in found.removed} == taken_away(table, until=7)
    assert readable(table) == {n: before[n] for n in range(7, 10)} | {10: before[9]}
    assert table.read_ids() == ids_of(range(9))
    with pytest.raises(SnapshotNotFound, match=r"snapshot 6 has expired.*7 to 10"):
        table.read_ids(snapshot_id=6)
    with pytest.raises(SnapshotNotFound, match="older ones have expired"):
        table.read_ids(as_of=table.log.read(6).at)
    assert table.read_ids(as_of=table.log.read(7).at) == before[7]
    table.round(9)
    assert table.read_ids() == ids_of(range(10))
    assert table.log.head()[0].earliest == 7, "the next commits know it"
    for reader, ids in table.read_by_others().items():
        assert ids == ids_of(range(10)), reader


def test_a_table_of_many_epochs_takes_its_own_bytes(make_table: Callable[..., Any], later: Callable[..., None]) -> None:
    table = make_table(options=LocalFileOptions(fold_files=5))
    for epoch in range(40):
        table.round(epoch)
    live, all_of = sum(e.bytes for e in table.files()), sum(p.stat().st_size for p in table.location.rglob("part-*"))
    assert all_of > 1.5 * live
    later(8)
    expire(table)
    assert sum(p.stat().st_size for p in table.location.rglob("part-*")) == live
    assert expire(table).files == (), "and it commits nothing more"
    assert table.log.head()[0].number == 41


@pytest.mark.parametrize("mode", [WriteMode.OVERWRITE, WriteMode.UPSERT])
def test_replaced_files(make_table: Callable[..., Any], later: Callable[..., None], mode: WriteMode) -> None:
    table = make_table(partition_by=("region",), options=LocalFileOptions(fold_files=0))
    for epoch in range(3):
        table.round(epoch, mode=WriteMode.OVERWRITE)
    if mode is WriteMode.UPSERT:
        staged = replace(table.stage([{"id": 7, "region": "x"}]), replaced=(table.files()[0].path,))
        committer = table.committer(mode)
        committer.publish(committer.open(), [staged], None)
    rows = table.read_ids()
    later(8)
    assert len(expire(table).removed) >= 8
    assert superseded(table) == set()
    assert table.read_ids() == rows


def test_a_list_changes_nothing(table: Any, later: Callable[..., None]) -> None:
    for epoch in range(5):
        table.round(epoch)
    later(0, host=8)
    tree = {path: path.stat().st_mtime_ns for path in table.location.rglob("*")}
    found = expire(table, delete=False)
    assert (found.earliest, len(found.files), found.removed) == (5, len(superseded(table)), ())
    assert {path: path.stat().st_mtime_ns for path in table.location.rglob("*")} == tree


def test_what_is_not_ours_stays(table: Any, later: Callable[..., None], tmp_path: Path) -> None:
    for epoch in range(3):
        table.round(epoch)
    folder = table.location / SUPERSEDED
    (gone,) = [each.name for each in sorted(folder.iterdir())][:1]
    theirs = [folder / name for name in ("notes.txt", "part-x.superseded", f"{gone}.bak", gone.replace("part", "xart"))]
    theirs += [folder / "sub" / gone]
    (folder / "sub").mkdir()
    for path in theirs:
        path.write_text("theirs")
    (tmp_path / "outside").write_text("outside")
    link = folder / gone.replace("part-00000", "part-00007")
    link.symlink_to(tmp_path / "outside")
    later(8)
    assert len(expire(table).removed) == 2
    assert all(path.read_text() == "theirs" for path in theirs)
    assert link.is_symlink()
    assert (tmp_path / "outside").read_text() == "outside"


# -- readers -----------------------------------------------------------------------------------------------------------


def test_plans_of_snapshots_that_stay_are_read(table: Any, later: Callable[..., None]) -> None:
    for epoch in range(4):
        table.round(epoch)
    source = table.storage.source(table.info)
    plan = source.plan(ScanRequest())
    old = source.plan(ScanRequest(snapshot_id=1))
    later(8)
    table.round(4)
    expire(table, keep=2)
    assert sorted(i for split in plan.splits for b in source.read(split, plan.schema) for i in b["id"].to_pylist())
    with pytest.raises(SnapshotNotFound, match="the snapshot expired while it was read"):
        list(source.read(old.splits[0], old.schema))
    # A file that is really lost is still called so.
    live = table.location / table.files()[0].path
    live.unlink()
    with pytest.raises(CorruptTable, match="a data file of the snapshot is missing"):
        table.read_ids()


def test_who_reads_commits_goes_on_from_the_earliest(table: Any, later: Callable[..., None]) -> None:
    for epoch in range(6):
        table.round(epoch)
    changes, source = table.storage.changes(table.info), table.storage.source(table.info)
    later(8)
    expire(table, keep=3)
    bounds = changes.versions()
    assert (bounds.earliest, bounds.latest) == (4, 8)
    plan = changes.plan(bounds.earliest, bounds.latest)
    found = sorted(i for s in plan.splits for b in source.read(s, plan.schema) for i in b["id"].to_pylist())
    assert found == ids_of(range(3, 6)), "the commit of the mark adds nothing, and breaks nothing"
    with pytest.raises(OffsetsExpired):
        changes.plan(3, 5)


# -- clocks ------------------------------------------------------------------------------------------------------------


def test_no_clock_of_a_host_ends_a_snapshot(table: Any, later: Callable[..., None], monkeypatch: Any) -> None:
    """Writers said that it was 1970, and the host that expires says 2040. The storage knows better."""
    from laketier.kit.manifests import committer

    monkeypatch.setattr(committer, "host_time", lambda: 5)
    for epoch in range(5):
        table.round(epoch)
    files = superseded(table)
    later(0, host=5000)
    assert expire(table).files == ()
    assert superseded(table) == files


def test_dates_that_went_back_keep_what_is_behind(table: Any, later: Callable[..., None], monkeypatch: Any) -> None:
    """The storage's clock was ahead for a while: the first young manifest ends the search."""
    for epoch in range(6):
        table.round(epoch)
    real = LocalFolder.files

    def files(self: Any, folder: str = "", **options: Any) -> Iterator[Any]:
        for found in real(self, folder, **options):
            ahead = found.path.endswith(f"{3:020}.json")
            yield replace(found, named_at=found.named_at + 30 * DAY) if ahead else found

    monkeypatch.setattr(LocalFolder, "files", files)
    later(8)
    assert expire(table).earliest == 2
    assert readable(table)[2] == ids_of(range(2))


def test_a_file_that_was_moved_late_is_young(table: Any, later: Callable[..., None], monkeypatch: Any) -> None:
    """Its commit was killed before it moved what it took away, and somebody finished it days later."""
    for epoch in range(3):
        table.round(epoch)
    real, late = LocalFolder.files, min(superseded(table))

    def files(self: Any, folder: str = "", **options: Any) -> Iterator[Any]:
        for found in real(self, folder, **options):
            yield replace(found, named_at=found.named_at + 30 * DAY) if found.path.endswith(late) else found

    monkeypatch.setattr(LocalFolder, "files", files)
    later(8)
    expire(table)
    assert superseded(table) == {late}


def test_a_copy_of_a_table_is_as_young_as_the_copy(table: Any, tmp_path: Path) -> None:
    """A restore keeps the dates of contents. The files have had their names for no time."""
    for epoch in range(3):
        table.round(epoch)
    for path in table.location.rglob("*"):
        os.utime(path, (1, 1))
    assert expire(table).files == ()
    assert len(superseded(table)) >= 2


# -- beside others, and cut off ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["expire.listed", "expire.before_mark", "expire.after_mark", "expire.before_delete"])
@pytest.mark.parametrize("what", ["round", "expire", "drop"])
def test_beside_others(table: Any, later: Callable[..., None], point: str, what: str) -> None:
    for epoch in range(4):
        table.round(epoch)
    later(8)

    def others() -> None:
        if what == "round":
            for epoch in range(4, 7):
                table.round(epoch)
        elif what == "expire":
            expire(table)
        else:
            table.storage.catalog().drop_table(table.path)
            table.create()
            for epoch in range(3):
                table.round(epoch)

    # A table that was dropped when the last look was done has no such files any more, so nothing is to be refused.
    refused = what == "drop" and point != "expire.before_delete"
    with at(point, others), pytest.raises((Conflict, TableNotFound)) if refused else nullcontext():
        expire(table)
    epochs = {"round": 7, "expire": 4, "drop": 3}[what]
    assert table.read_ids() == ids_of(range(epochs))
    for number, ids in readable(table).items():
        assert ids == ids_of(range(len(ids) // 4)), number
    table.round(epochs)
    expire(table, keep=1)
    assert table.read_ids() == ids_of(range(epochs + 1))


@pytest.mark.parametrize("point", ["expire.listed", "expire.before_mark", "expire.after_mark", "expire.before_delete"])
def test_cut_off(table: Any, later: Callable[..., None], point: str) -> None:
    for epoch in range(4):
        table.round(epoch)
    later(8)

    def cut() -> None:
        raise KeyboardInterrupt

    with at(point, cut), pytest.raises(KeyboardInterrupt):
        expire(table)
    for number, ids in readable(table).items():
        assert ids == ids_of(range(min(number, 4)))
    expire(table)
    assert superseded(table) == set()
    assert table.read_ids() == ids_of(range(4))


def test_commits_that_always_come_first(table: Any, later: Callable[..., None], monkeypatch: Any) -> None:
    monkeypatch.setattr(expiry, "_TRIES", 2)
    for epoch in range(4):
        table.round(epoch)
    later(8)
    epochs = itertools.count(4)

    def observe(name: str) -> None:
        if name == "expire.before_mark":
            table.round(next(epochs))

    with failpoints.observed(observe), pytest.raises(Conflict):
        expire(table)
    assert len(readable(table)) == table.log.head()[0].number + 1


def test_open_files(open_table: Callable[..., Any], later: Callable[..., None]) -> None:
    """A process whose file was finished by another one goes on in one of its own, also where the old one is gone."""
    table = open_table("json")
    gone = table.writer()
    for epoch in range(2):
        gone.write(epoch, [batch(epoch)])
    with table.writer() as other:
        other.write(2, [batch(2)])
    assert superseded(table)
    later(8)
    assert expire(table).removed
    assert superseded(table) == set()
    gone.write(2, [batch(2)])  # which is there already
    assert table.read_ids() == ids_of(range(3))
    with table.writer() as again:
        again.write(3, [batch(3)])
        expire(table)
        again.write(4, [batch(4)])
        assert table.read_ids() == ids_of(range(5))
    assert table.read_ids() == ids_of(range(5))


def batch(epoch: int) -> Any:
    import pyarrow as pa
    from conftest import SCHEMA

    return pa.record_batch([ids_of(range(epoch, epoch + 1)), ["r"] * 4], schema=SCHEMA)


def test_a_rebuilt_table(table: Any, later: Callable[..., None]) -> None:
    """What it had superseded belongs to no snapshot of the new one."""
    for epoch in range(5):
        table.round(epoch)
    (table.location / "_laketier_manifests" / "table.json").unlink()
    chain = next(path for path in (table.location / "_laketier_manifests").iterdir() if path.is_dir())
    (chain / f"{2:020}.json").unlink()
    table.storage.adoption().rebuild(table.path)
    later(8)
    assert len(expire(table).removed) >= 4
    assert table.read_ids() == ids_of(range(5))


@pytest.mark.parametrize("rounds", [2, pytest.param(100, marks=pytest.mark.deep)])
def test_killed_at_any_moment(table: Any, rounds: int) -> None:
    """Processes write, fold and expire; each is killed. All snapshots that are offered are whole."""
    chance, epoch = random.Random(20261125), 0
    for turn in range(rounds):
        command = [sys.executable, "-c", EXPIRES, str(table.warehouse), str(table.path)]
        with subprocess.Popen(command, stdout=PIPE) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"begun\n"
            writer = table.child("", *range(epoch, epoch + 20), fold_files=2)
            for _ in range(chance.randint(3, 6)):
                assert writer.answer() is not None
            assert other.poll() is None, "it expires until it is killed"
            other.kill()
            os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        table.committer().open()
        for number, ids in readable(table).items():
            assert ids == ids_of(range(len(ids) // 4)), f"turn {turn}, snapshot {number}"
        epoch = len(table.read_ids()) // 4
    expire(table, days=-1)
    assert superseded(table) == set()
    assert table.read_ids() == ids_of(range(epoch))


# -- in S3, and at the prompt ------------------------------------------------------------------------------------------


def test_in_s3(s3: Any, storage: Passthrough, monkeypatch: pytest.MonkeyPatch) -> None:
    from localfile_s3 import S3Table

    from laketier_localfile.s3.store import S3Store

    table = S3Table.of(s3, storage, fold_files=2)
    for epoch in range(5):
        table.round(epoch)
    assert expire(table).files == ()
    now = S3Store.now
    monkeypatch.setattr(S3Store, "now", lambda self: now(self) + 8 * DAY)
    assert len(expire(table).removed) >= 4
    assert not any(key.startswith(SUPERSEDED) for key in table.all_keys())
    assert table.read_ids() == table.plain_ids() == ids_of(range(5))
    table.round(5)
    assert table.read_ids() == table.plain_ids() == ids_of(range(6))


def test_at_the_prompt(table: Any, later: Callable[..., None]) -> None:
    for epoch in range(5):
        table.round(epoch)
    lake = ["db.events", "-f", "localfile", "-w", str(table.warehouse)]
    run = CliRunner().invoke
    assert "nothing to expire" in run(app, ["maintain", "expire", *lake]).output
    later(8, host=8)
    listed = run(app, ["maintain", "expire", *lake, "--keep", "2"])
    assert listed.exit_code == 0, listed.output
    assert "snapshots 4 to 5 would be left" in listed.output
    refused = run(app, ["maintain", "expire", *lake, "--older-than", "2h", "--delete"])
    assert isinstance(refused.exception, ConfigError)
    done = run(app, ["maintain", "expire", *lake, "--keep", "2", "--delete"])
    assert done.exit_code == 0, done.output
    assert "the snapshots that are left are 4 to 5" in done.output
    assert run(app, ["history", *lake]).exit_code == 0
