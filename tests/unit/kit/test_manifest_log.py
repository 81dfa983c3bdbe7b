"""The log of a table of files and manifests: what is durable, the head, and names that are taken once."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from laketier import spi
from laketier.kit import durable, local_store
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from text_lake import PATH, SCHEMA, Lake, Recorded, following, put


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def test_a_file_is_durable_before_its_name_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
    durable.create_exclusively(tmp_path / "n", b"four")
    assert recorded.seen == [("sync", "file", "4"), ("link", "n"), ("sync", tmp_path.name)]


def test_a_creation_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "link", fails)
    with pytest.raises(OSError, match="no space"):
        durable.create_exclusively(tmp_path / "n", b"four")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError, match="gone"):
        durable.create_exclusively(tmp_path / "gone" / "n", b"four")


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    durable.fsync_directory(tmp_path)
    durable.fsync_file(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_somebody_makes_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
    is_there = durable.is_there
    monkeypatch.setattr(durable, "is_there", lambda path: path.name != "a" and is_there(path))
    (tmp_path / "a").mkdir()
    durable.make_directories(tmp_path / "a")
    assert recorded.seen[-1] == ("sync", tmp_path.name)


def test_a_parent_that_is_somebody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    sync = durable.fsync_directory

    def refused(path: Path) -> None:
        if Path(path) == tmp_path:
            raise PermissionError(13, "Permission denied", str(path))
        sync(path)

    monkeypatch.setattr(durable, "fsync_directory", refused)
    durable.make_directories(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_a_published_file_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):
        durable.fsync_published(tmp_path / "gone")
    path = tmp_path / "entry"
    path.write_bytes(b"bytes")
    recorded = Recorded(monkeypatch)
    sync, failures = os.fsync, [OSError(5, "Input/output error")]

    def fails_once(descriptor: int) -> None:
        sync(descriptor)
        if failures:
            raise failures.pop()

    monkeypatch.setattr(os, "fsync", fails_once)
    durable.fsync_published(path)
    assert path.read_bytes() == b"bytes"
    assert recorded.seen == [("sync", "file", "5")] * 2
    assert durable.fsync_published(path) is None
    assert len(recorded.seen) == 3


def test_a_head_that_is_not_finished_is_made_durable_and_finished(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = lake.table.manifests()
    put(manifests, following(manifests.head()[0]))
    recorded = Recorded(monkeypatch)
    assert lake.table.open().head.number == 1
    names = {manifests.folder.parent.name, manifests.folder.name}
    assert {name for _, name, *_ in recorded.seen[:2]} == names
    assert ("replace", "head.json") in recorded.seen
    recorded.seen.clear()
    lake.table.open()
    assert recorded.seen == [], "what is finished is not finished again"


def test_a_creation_is_answered_for_only_when_it_is_durable(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process made the table, and was killed before its last sync."""
    manifests = lake.table.manifests()
    recorded = Recorded(monkeypatch)
    lake.catalog.create_table(PATH, spi.TableDescriptor(SCHEMA))
    assert recorded.seen == []
    (manifests.folder / "head.json").unlink()
    lake.catalog.create_table(PATH, spi.TableDescriptor(SCHEMA))
    assert sorted(recorded.seen) == sorted([("sync", manifests.folder.parent.name), ("sync", manifests.folder.name)])


def test_newest_manifests_that_are_gone(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    lake.round(0, 1)
    lake.round(1, 2)
    manifests = lake.table.manifests()
    manifests.path(2).unlink()
    with pytest.raises(spi.RolledBack, match="manifest 2 is gone"):
        manifests.head()
    head, finished = manifests.current()
    assert (head.number, finished) == (1, False)
    assert "reading an older state" in caplog.text
    assert lake.read() == [1]
    assert lake.catalog.load_table(PATH).handle is None
    with pytest.raises(spi.RolledBack):
        lake.round(2, 3)


def test_a_newest_manifest_that_is_another_one(lake: Lake) -> None:
    lake.round(0, 1)
    manifests = lake.table.manifests()
    put(manifests, following(manifests.read(0)))
    with pytest.raises(spi.RolledBack, match="manifest 1 is not the one that was published"):
        manifests.head()


def test_a_head_file_that_is_late_or_gone(lake: Lake) -> None:
    for epoch in range(3):
        lake.round(epoch, epoch)
    manifests = lake.table.manifests()
    head, finished = manifests.head()
    assert (head.number, finished) == (3, True)
    file = manifests.folder / "head.json"
    newest = file.read_bytes()
    file.unlink()
    manifests.note_head(manifests.read(1))
    assert [manifests.head()[0].number, manifests.head()[1]] == [3, False]
    file.unlink()
    assert [manifests.head()[0].number, manifests.head()[1]] == [3, False]
    file.write_bytes(newest)
    manifests.note_head(manifests.read(1))
    assert file.read_bytes() == newest, "it never goes back"


@pytest.mark.parametrize(
    "name",
    [
        "9.json",
        f"{9:020}.json.bak",
        f"{9:020}.json~",
        f"{9:021}.json",
        f"copy of {9:020}.json",
        "\u0669".rjust(20, "0") + ".json",
    ],
)
def test_a_file_of_another_name_is_no_manifest(lake: Lake, name: str) -> None:
    """Of a number that no manifest has yet, and it lies where the newest one is looked for by its name."""
    lake.round(0, 0)
    manifests = lake.table.manifests()
    newest = manifests.path(1).read_bytes()
    (manifests.folder / name).write_bytes(newest)
    (manifests.folder / "head.json").unlink()
    assert manifests.number_of(f"{manifests.home}/{name}") is None
    assert manifests.head()[0].number == 1
    lake.round(1, 1)
    assert lake.read() == [0, 1]
    assert manifests.number_of(manifests.name(2)) == 2


def test_a_head_file_is_not_written_twice(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = lake.table.manifests()
    recorded = Recorded(monkeypatch)
    manifests.note_head(manifests.read(0))
    assert recorded.seen == []


def test_a_head_file_that_cannot_be_written_leaves_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = lake.table.manifests()
    (manifests.folder / "head.json").unlink()
    before = sorted(manifests.folder.iterdir())

    def fails(*_: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="no space"):
        manifests.note_head(manifests.read(0))
    assert sorted(manifests.folder.iterdir()) == before


def test_a_version_that_was_read_across_a_commit_is_never_said_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where that commit is taken away, and the head file still tells of it."""
    manifests = lake.table.manifests()
    exists = ManifestLog.exists

    def with_a_rival(log: ManifestLog, number: int) -> bool:
        found = exists(log, number)
        if number == 1 and not found:
            monkeypatch.undo()
            put(manifests, following(manifests.head()[0]))
            manifests.note_head(manifests.read(1))
        return found

    monkeypatch.setattr(ManifestLog, "exists", with_a_rival)
    told = manifests.version()
    assert told is not None
    manifests.path(1).unlink()
    assert not ManifestLog.is_version(told, manifests.place, manifests.layout)


def test_a_version_is_of_the_head_file_that_was_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right after that it becomes another one, which tells of a commit that is taken away at once."""
    manifests, hint = lake.table.manifests(), ManifestLog._hint

    def with_a_rival(log: ManifestLog) -> Any:
        found = hint(log)
        monkeypatch.undo()
        put(manifests, following(manifests.read(0)))
        manifests.note_head(manifests.read(1))
        manifests.path(1).unlink()
        return found

    monkeypatch.setattr(ManifestLog, "_hint", with_a_rival)
    told = manifests.version()
    assert told is not None
    assert not ManifestLog.is_version(told, manifests.place, manifests.layout)


def test_a_moment_is_the_newest_snapshot_that_was_there(lake: Lake) -> None:
    manifests = lake.table.manifests()
    head = manifests.head()[0]
    times = [head.at]
    for step in (0, 10, 10, 25):
        head = replace(following(head), at=times[-1] + step)
        put(manifests, head)
        head = manifests.read(head.number)
        times.append(head.at)
    for moment in range(times[0], times[-1] + 2):
        expected = max(number for number, at in enumerate(times) if at <= moment)
        assert manifests.as_of(moment, head).number == expected
    with pytest.raises(spi.SnapshotNotFound, match="no snapshot as old as"):
        manifests.as_of(times[0] - 1, head)
    for number in (-1, 5, 99):
        with pytest.raises(spi.SnapshotNotFound, match="0 to 4"):
            manifests.at(number, head)
    put(manifests, following(head))
    with pytest.raises(spi.SnapshotNotFound, match="0 to 4"):
        manifests.at(5, head)
    assert [manifests.at(number, head).number for number in range(5)] == list(range(5))


def test_times_never_go_back(lake: Lake) -> None:
    head = replace(lake.table.manifests().head()[0], at=2**40 * 4)
    assert following(head).at == head.at + 1
    assert following(replace(head, at=5)).at > 5 + 10**9


def test_of_two_manifests_of_a_number_one_is_published(lake: Lake) -> None:
    manifests = lake.table.manifests()
    head = manifests.head()[0]
    first, second = following(head), following(head)
    assert manifests.append(first) == first
    with pytest.raises(spi.Conflict, match="another writer published snapshot 1"):
        manifests.append(second)
    assert manifests.append(first) == first, "a network file system may say so of our own link"
    assert manifests.read(1) == first


def test_nothing_is_published_in_a_table_that_was_dropped(lake: Lake) -> None:
    manifests = lake.table.manifests()
    head = manifests.head()[0]
    lake.catalog.drop_table(PATH)
    with pytest.raises(spi.Conflict, match="the table was dropped meanwhile"):
        manifests.append(following(head))


@pytest.mark.parametrize("error", [FileNotFoundError("another"), OSError("another"), PermissionError("another")])
def test_what_is_not_known_is_no_conflict(lake: Lake, monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    manifests = lake.table.manifests()

    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(local_store, "create_exclusively", fails)
    with pytest.raises(type(error), match="another"):
        manifests.append(following(manifests.head()[0]))


def _taken_back(lake: Lake) -> tuple[ManifestLog, Manifest]:
    """A table whose two newest manifests are gone, while its head file tells of them; and the newest that is left."""
    for epoch in range(3):
        lake.round(epoch, epoch)
    manifests = lake.table.manifests()
    head = manifests.read(1)
    for number in (2, 3):
        manifests.path(number).unlink()
    return manifests, head


def test_a_name_that_is_free_again_is_not_taken(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests, head = _taken_back(lake)
    gone: list[bool] = []
    recorded, sync = Recorded(monkeypatch), durable.fsync_directory

    def synced(folder: Path) -> None:
        gone.append(not manifests.path(2).exists())
        sync(folder)

    monkeypatch.setattr(local_store, "fsync_directory", synced)
    with pytest.raises(spi.Conflict, match="the table is at snapshot 3, and the name of snapshot 2 was free"):
        manifests.append(following(head))
    assert not manifests.path(2).exists()
    assert gone == [True], "only what is done is made durable"
    assert recorded.seen[-2:] == [("sync", manifests.folder.name)] * 2, "of the name, and of its end"


def test_a_name_of_the_newest_that_is_free_again_is_not_taken(lake: Lake) -> None:
    lake.round(0, 1)
    manifests = lake.table.manifests()
    manifests.path(1).unlink()
    with pytest.raises(spi.Conflict, match="the table is at snapshot 1, and the name of snapshot 1 was free"):
        manifests.append(following(manifests.read(0)))
    assert not manifests.path(1).exists()


def test_what_others_built_on_stays(lake: Lake) -> None:
    """Between the link and the look another writer finished our manifest, published the next, and noted it."""
    manifests = lake.table.manifests()
    ours = following(manifests.head()[0])
    theirs = following(ours)
    put(manifests, theirs)
    manifests.note_head(theirs)
    assert manifests.append(ours) == ours
    assert manifests.path(1).exists()


def test_what_others_finished_stays(lake: Lake) -> None:
    manifests = lake.table.manifests()
    ours = following(manifests.head()[0])
    manifests.note_head(ours)
    assert manifests.append(ours) == ours
    assert manifests.path(1).exists()


def test_a_name_before_somebody_elses_manifest_is_not_taken(lake: Lake) -> None:
    """The next one is there, and follows another."""
    manifests = lake.table.manifests()
    head = manifests.head()[0]
    theirs = following(following(head, commit_id="theirs"))
    put(manifests, theirs)
    manifests.note_head(theirs)
    with pytest.raises(spi.Conflict, match="the table is at snapshot 2, and the name of snapshot 1 was free"):
        manifests.append(following(head, commit_id="ours"))
    assert not manifests.path(1).exists()


def test_without_a_head_file_a_name_is_taken(lake: Lake) -> None:
    manifests = lake.table.manifests()
    (manifests.folder / "head.json").unlink()
    ours = following(manifests.read(0))
    assert manifests.append(ours) == ours


def test_a_name_that_vanished_before_it_was_given_back(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests, head = _taken_back(lake)
    create = local_store.create_exclusively

    def gone_at_once(path: Path, data: bytes) -> None:
        create(path, data)
        path.unlink()

    monkeypatch.setattr(local_store, "create_exclusively", gone_at_once)
    with pytest.raises(spi.Conflict):
        manifests.append(following(head))


def test_a_manifest_that_is_missing_in_the_middle_is_told_by_the_head_file(lake: Lake) -> None:
    """The newest is there, and what the head file names is not: a part of the folder was restored."""
    for epoch in range(2):
        lake.round(epoch, epoch)
    manifests = lake.table.manifests()
    put(manifests, following(manifests.read(2)))
    manifests.path(2).unlink()
    with pytest.raises(spi.RolledBack, match="manifest 2 is gone"):
        manifests.head()


@pytest.mark.parametrize("hint", [True, False])
def test_a_table_that_is_dropped_meanwhile_is_not_damaged(lake: Lake, *, hint: bool) -> None:
    """A drop takes ``table.json`` first, and then the rest in any order."""
    lake.round(0, 1)
    manifests = lake.table.manifests()
    head = manifests.read(1)
    (lake.table.location / "_text" / "table.json").unlink()
    if not hint:
        (manifests.folder / "head.json").unlink()
    for number in (0, 1):
        manifests.path(number).unlink()
    for look in (manifests.head, lambda: manifests.read(1), lambda: manifests.metadata(head), manifests._last_listed):
        with pytest.raises(spi.TableNotFound, match="dropped meanwhile"):
            look()


def test_a_table_that_is_taken_away_file_by_file_takes_no_commit(lake: Lake) -> None:
    manifests = lake.table.manifests()
    ours = following(manifests.head()[0])
    (lake.table.location / "_text" / "table.json").unlink()
    (manifests.folder / "head.json").unlink()
    with pytest.raises(spi.Conflict, match="the table was dropped meanwhile"):
        manifests.append(ours)
    assert not manifests.path(1).exists()


def test_whether_a_table_was_dropped_is_not_guessed(lake: Lake) -> None:
    manifests = lake.table.manifests()
    (lake.table.location / "_text" / "table.json").write_bytes(b"damaged")
    with pytest.raises(spi.CorruptTable, match=r"table\.json"):
        manifests.read(7)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), spi.StorageError("busy")])
def test_a_head_file_that_can_not_be_looked_at_is_not_passed_over(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """It may tell of manifests that are gone."""
    manifests, read = lake.table.manifests(), local_store.LocalStore.read

    def fails(store: local_store.LocalStore, path: str) -> bytes:
        if path.endswith("head.json"):
            raise error
        return read(store, path)

    monkeypatch.setattr(local_store.LocalStore, "read", fails)
    for look in (manifests.head, manifests.current):
        with pytest.raises(type(error)):
            look()


def test_a_reader_looks_at_an_older_state_only_where_manifests_are_gone(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise OSError("busy")

    monkeypatch.setattr(ManifestLog, "head", fails)
    with pytest.raises(OSError, match="busy"):
        lake.table.manifests().current()


def test_a_creation_that_fails_in_a_table_that_is_gone_is_no_conflict(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where the folder is what was missed: after any other error nobody knows."""
    manifests = lake.table.manifests()
    ours = following(manifests.head()[0])

    def fails(*_: Any) -> None:
        lake.catalog.drop_table(PATH)
        raise OSError("no answer")

    monkeypatch.setattr(local_store, "create_exclusively", fails)
    with pytest.raises(OSError, match="no answer"):
        manifests.append(ours)


def test_a_manifest_that_describes_the_table_is_not_read_for_that(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = lake.table.manifests()
    first = manifests.read(0)

    def fails(*_: Any) -> bytes:
        raise AssertionError("it is known")

    monkeypatch.setattr(local_store.LocalStore, "read", fails)
    assert manifests.metadata(first) == first.metadata
    assert manifests.at(0, first) == first


def test_a_snapshot_is_looked_at_anew(lake: Lake) -> None:
    """What was there a moment ago may be damaged by now."""
    lake.round(0, 1)
    manifests = lake.table.manifests()
    head = manifests.head()[0]
    for look in (lambda: manifests.at(0, head), lambda: manifests.read(0), lambda: manifests.metadata(head)):
        document = manifests.path(0).read_bytes()
        look()
        manifests.path(0).write_bytes(b"damaged")
        with pytest.raises(spi.CorruptTable):
            look()
        manifests.path(0).write_bytes(document)


def test_a_moment_is_found_through_a_plan(lake: Lake) -> None:
    lake.round(0, 1)
    lake.round(1, 2)
    at = lake.table.manifests().read(1).at
    assert lake.read(as_of=at) == [1]
    assert lake.read(as_of=at - 1) == []
    assert lake.read(as_of=at + 10**9) == [1, 2]


def test_a_commit_is_found_by_its_id_and_told_with_its_number(lake: Lake) -> None:
    state = lake.table.open()
    committer = lake.create_committer(spi.CommitterInitContext("mine"))
    assert not state.landed("mine")
    result = committer.publish(state, [lake.stage(1, 2)], None)
    assert (result.snapshot_id, result.rows, result.files, result.bytes) == (1, 2, 1, len("1\n2"))
    after = lake.table.open()
    assert after.landed("mine")
    assert not after.landed("theirs")
    assert not state.landed("mine"), "it is of an older snapshot"


def test_a_manifest_that_was_taken_away_is_published_again(lake: Lake) -> None:
    """By whoever asks for it once more: what was answered before counts for nothing."""
    manifests = lake.table.manifests()
    ours = following(manifests.head()[0])
    for _ in range(2):
        assert manifests.append(ours) == ours
        manifests.path(1).unlink()
