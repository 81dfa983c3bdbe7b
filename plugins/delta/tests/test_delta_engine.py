"""What delta-rs says and does when it fails, as laketier tells it."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.table import TableAlterer

from laketier.spi import (
    AddColumn,
    CommitError,
    CorruptTable,
    IncompatibleTable,
    LaketierError,
    Passthrough,
    StorageError,
    TableError,
    TableNotFound,
)
from laketier_delta import engine
from laketier_delta import log_version as log_version_module
from laketier_delta.engine import has_log, log_changed, not_read, open_table, panics_as_errors
from laketier_delta.location import Location
from laketier_delta.log_version import last_checkpoint, leads_to, log_version


class PanicException(BaseException):
    """As pyo3 names it."""


def panicking(*_: object, **__: object) -> Any:
    raise PanicException("index out of bounds")


def here(lake: Any) -> Location:
    return Location(lake.uri, Passthrough())


def test_a_panic_in_a_checkpoint_is_no_failed_commit(
    lake: Any, support: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lake.create(delta__checkpointInterval="1")
    for name in ("create_checkpoint", "cleanup_metadata"):
        with monkeypatch.context() as patched:
            patched.setattr(DeltaTable, name, panicking)
            lake.append(support.ids(1))
        assert "its checkpoint failed" in caplog.text
        caplog.clear()
    assert support.values(lake.read()) == [1, 1]


@pytest.mark.parametrize("method", ["create_write_transaction", "get_add_actions"])
def test_a_panic_in_a_commit_or_a_plan_is_an_error(
    lake: Any, support: Any, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    lake.create()
    committer = lake.committer()
    state, staged = committer.open(), lake.stage(support.ids(1))
    act = lake.read if method == "get_add_actions" else lambda: committer.publish(state, [staged], None)
    with monkeypatch.context() as patched:
        patched.setattr(DeltaTable, method, panicking)
        with pytest.raises(CommitError, match="delta-rs panicked") as told:
            act()
    assert "index out of bounds" in (told.value.why or "")
    assert DeltaTable(lake.uri).version() == 0


def test_a_panic_in_a_change_of_the_table_is_an_error(lake: Any, support: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.create()
    monkeypatch.setattr(TableAlterer, "add_columns", panicking)
    with pytest.raises(CommitError, match="delta-rs panicked"):
        lake.storage.catalog().alter_table(support.PATH, [AddColumn(pa.field("more", pa.int64()))])


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_what_is_no_panic_is_raised_as_it_is(error: type[BaseException]) -> None:
    with pytest.raises(error), panics_as_errors():
        raise error


def failing(monkeypatch: pytest.MonkeyPatch, errors: list[Exception]) -> list[Exception]:
    """delta-rs raises these, one after the other, as it opens a table. Returns those that are left."""
    real = DeltaTable.__init__

    def opened(table: DeltaTable, *given: Any, **named: Any) -> None:
        if errors:
            raise errors.pop(0)
        real(table, *given, **named)

    monkeypatch.setattr(DeltaTable, "__init__", opened)
    return errors


CHANGING = [
    DeltaError("Expected contiguous commit files"),
    DeltaError("File not found: 0.json"),
    DeltaError("No files in log segment"),
    DeltaError("Path does not exist"),
    DeltaError("Failed to canonicalize"),
    DeltaError('Local path "x" does not exist'),
    DeltaError("Kernel error: No table metadata or protocol found in delta log."),
    DeltaError("Kernel error: No protocol found in delta log."),
    DeltaError("Kernel error: No table metadata found in delta log."),
    DeltaError("Kernel error: Invalid Checkpoint: Had a _last_checkpoint hint but didn't find any checkpoints"),
    DeltaError("Kernel error: Invalid Checkpoint: Gap between checkpoint version 1 and next commit 3"),
    DeltaError("Kernel error: LogSegment end version 0 not the same as the specified end version 1"),
    TableNotFoundError("no table"),
]


@pytest.mark.parametrize("error", CHANGING, ids=str)
def test_a_log_that_changes_while_it_is_read_is_read_again(
    lake: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    lake.create()
    left = failing(monkeypatch, [error] * (engine.LISTINGS - 1))
    assert open_table(here(lake)).version() == 0
    assert left == []


@pytest.mark.parametrize(
    ("error", "told", "tries"),
    [
        (DeltaError("File not found: 0.json"), CorruptTable, engine.LISTINGS),
        (TableNotFoundError("no table"), TableError, engine.LISTINGS),
        (DeltaError("not valid JSON"), CorruptTable, 1),
        (ValueError('Found unmasked nulls for non-nullable StructArray field "id"'), CorruptTable, 1),
        (DeltaError("Generic error (os error 13)"), StorageError, 1),
        (DeltaError("Os { code: 5, kind: Other }"), StorageError, 1),
        (DeltaError("Unsupported: reader feature 'foo'"), IncompatibleTable, 1),
        (OSError("no answer"), StorageError, 1),
    ],
    ids=str,
)
def test_a_failure_is_told_by_its_class_once_looking_again_does_not_help(
    lake: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, told: type[LaketierError], tries: int
) -> None:
    lake.create()
    left = failing(monkeypatch, [error] * 20)
    with pytest.raises(told) as caught:
        open_table(here(lake))
    assert (type(caught.value), 20 - len(left)) == (told, tries)
    assert caught.value.where == lake.uri


@pytest.mark.parametrize("error", CHANGING, ids=str)
def test_a_table_that_is_gone_by_then_is_none(lake: Any, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    left = failing(monkeypatch, [error] * 20)
    with pytest.raises(TableNotFound):
        open_table(here(lake))
    assert len(left) == 19


def test_a_missing_file_of_the_system_is_no_failed_look() -> None:
    assert log_changed(DeltaError("File not found (os error 2)"))


@pytest.mark.parametrize("what", [OSError("no answer"), PermissionError("denied")])
def test_a_log_that_can_not_be_listed_is_not_taken_for_none(
    lake: Any, monkeypatch: pytest.MonkeyPatch, what: OSError
) -> None:
    lake.create()
    failing(monkeypatch, [TableNotFoundError("no table")])

    class Failing:
        def get_file_info(self, _: object) -> Any:
            raise what

    monkeypatch.setattr(Location, "filesystem", Failing())
    with pytest.raises(StorageError, match="can't be reached"):
        open_table(here(lake))


def test_a_store_that_is_not_there_is_told_in_one_line_without_colours() -> None:
    """delta-rs prints its causes for a terminal: each on a line of its own, behind a coloured arrow."""
    with socket.socket() as closed:  # bound, and never listened on
        closed.bind(("127.0.0.1", 0))
        storage = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{closed.getsockname()[1]}", "AWS_REGION": "us-east-1"}
        storage |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "max_retries": "0"}
        with pytest.raises(StorageError, match=r"the Delta log can't be reached, because .*Connect") as told:
            open_table(Location.of("s3://lake/x", Passthrough(storage)))
    assert not {"\n", "\x1b"} & set(str(told.value))


def test_a_damaged_log_that_can_not_be_listed_is_not_reached(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether one entry is left of a table that was dropped, nobody knows then."""
    lake.create()

    def unlisted(_: Location) -> Any:
        raise OSError("no answer")

    monkeypatch.setattr(engine, "lone_entry", unlisted)
    failing(monkeypatch, [DeltaError("Kernel error: No protocol found in delta log.")] * 9)
    with pytest.raises(StorageError, match="the Delta log can't be reached, because no answer"):
        open_table(here(lake))


@pytest.mark.parametrize("name", [f"{1:020}.checkpoint.parquet", f"{2:020}.json"])
def test_a_file_of_the_log_that_nobody_can_look_at_is_no_damage(
    lake: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """delta-rs leaves it out, as it leaves out a link to nowhere, and finds the rest damaged."""
    lake.create()
    for epoch in range(3):
        lake.epoch(epoch)
        if epoch == 0:
            DeltaTable(lake.uri).create_checkpoint()
    entry = Path(lake.uri, "_delta_log", name)
    entry.unlink()
    entry.symlink_to("nowhere")
    with pytest.raises(CorruptTable, match="Invalid Checkpoint"):
        open_table(here(lake))

    def unseen(path: Path) -> bool:
        if path == entry:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
        return True

    monkeypatch.setattr(log_version_module, "is_there", unseen)
    with pytest.raises(StorageError, match=f"the Delta log can't be reached, because .*{name}"):
        open_table(here(lake))


def test_what_makes_a_log(tmp_path: Path) -> None:
    files = pafs.LocalFileSystem()
    assert not has_log(files, str(tmp_path))
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / "_last_checkpoint").touch()
    assert not has_log(files, str(tmp_path))
    (log / f"{0:020}.json").touch()
    assert has_log(files, str(tmp_path))
    (log / f"{0:020}.checkpoint.parquet").touch()
    assert has_log(files, str(tmp_path))


def test_a_log_that_is_dropped_while_it_is_listed_is_none() -> None:
    class Dropped:
        def get_file_info(self, _: object) -> Any:
            raise FileNotFoundError

    assert not has_log(Dropped(), "t")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("Max catalog version error", "belongs to a catalog", "a table without it"),
        ("Unsupported: Feature 'rowTracking'", "the reader feature 'rowTracking'", "DROP FEATURE rowTracking"),
        ("Unsupported: version 9", "a newer protocol", "engine that made it"),
    ],
)
def test_a_healthy_table_that_asks_for_more_is_told_what(text: str, what: str, fix: str) -> None:
    told = not_read(DeltaError(text), "the table")
    assert what in told.what
    assert told.where == "the table"
    assert fix in (told.fix or "")


def test_a_pipelines_transactions_in_a_log_that_is_gone(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.create()
    lake.epoch(0)
    handle = open_table(here(lake))
    assert engine.transaction_version(handle, here(lake), "laketier/epoch/p") == 0
    for error in (DeltaError("gone"), OSError("gone")):

        def fail(*_: object, error: Exception = error) -> Any:
            raise error

        monkeypatch.setattr(DeltaTable, "transaction_version", fail)
        with pytest.raises(TableError, match="could not be read any more"):
            engine.transaction_version(handle, here(lake), "laketier/epoch/p")
        with pytest.raises(TableNotFound):
            engine.transaction_version(handle, Location(f"{lake.uri}-gone", Passthrough()), "laketier/epoch/p")


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_entry_without_content_is_damage(lake: Any, number: int) -> None:
    lake.create()
    lake.epoch(0)
    lake.epoch(1)
    entry = Path(lake.uri, "_delta_log", f"{number:020}.json")
    entry.write_bytes(b"")
    match = "the newest entry of the Delta log is empty" if number == 2 else "an entry of the Delta log is empty"
    with pytest.raises(CorruptTable, match=match if number else "."):
        open_table(here(lake))


def test_entries_before_a_checkpoint_are_nobodys_business(lake: Any) -> None:
    lake.create()
    for epoch in range(3):
        lake.epoch(epoch)
        if epoch == 1:
            DeltaTable(lake.uri).create_checkpoint()
    Path(lake.uri, "_delta_log", f"{1:020}.json").write_bytes(b"")
    assert open_table(here(lake)).version() == 3


LAST = "_last_checkpoint"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"version": 2}', 2),
        ('{"version": 3}', 3),
        ('{"version": 4}', -1),
        ('{"version": 0}', 0),
        ('{"version": -1}', -1),
        ('{"version": "2"}', 2),
        ("{}", -1),
        ("[]", -1),
        ("{", -1),
        ('{"version": null}', -1),
        ("[" * 100_000, -1),
        (None, -1),
    ],
)
def test_the_last_checkpoint_as_the_log_tells_it(tmp_path: Path, text: str | None, found: int) -> None:
    if text is not None:
        (tmp_path / LAST).write_text(text)
    assert last_checkpoint(tmp_path, 3) == found


def named(folder: Path, *names: str) -> Location:
    log = folder / "_delta_log"
    log.mkdir()
    for name in names:
        number, _, rest = name.partition(".")
        (log / f"{int(number):020}.{rest}").write_text(name)
    return Location(str(folder), Passthrough())


@pytest.mark.parametrize(
    ("names", "version", "leads"),
    [
        (["0.json", "1.json", "2.json"], 2, True),
        (["0.json", "1.json", "2.json"], 1, True),
        (["0.json", "1.json", "2.json"], 3, False),
        (["0.json", "2.json"], 2, False),
        (["1.json", "2.json"], 2, False),
        (["1.checkpoint.parquet", "2.json"], 2, True),
        (["1.checkpoint.parquet", "2.json"], 1, True),
        (["1.checkpoint.parquet", "3.json"], 3, False),
        (["2.checkpoint.0000000001.0000000002.parquet", "3.json"], 3, True),
        (["2.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet", "3.json"], 3, True),
        (["3.checkpoint.parquet", "2.json"], 2, False),
        (["1.crc", "0.json"], 1, False),
        ([], -1, False),
    ],
)
def test_whether_entries_lead_to_a_version(tmp_path: Path, names: list[str], version: int, leads: bool) -> None:
    assert leads_to(named(tmp_path, *names), version) is leads


def test_nothing_leads_to_a_version_where_nobody_can_tell(tmp_path: Path) -> None:
    assert not leads_to(Location("s3://bucket/t", Passthrough()), 0)
    assert not leads_to(Location(str(tmp_path / "none"), Passthrough()), 0)


@pytest.mark.parametrize(
    ("names", "newest"),
    [
        (["0.json"], 0),
        (["0.json", "1.json", "1.checkpoint.parquet"], 1),
        (["0.json", "1.checkpoint.parquet"], None),
        (["1.checkpoint.parquet"], None),
        (["9.json", "10.json"], 10),
        (["9.json", "10.crc"], 9),
        ([], None),
    ],
)
def test_the_version_of_a_log_is_its_newest_entry(tmp_path: Path, names: list[str], newest: int | None) -> None:
    found = log_version(named(tmp_path, *names), None)
    assert (None if found is None else int(found.partition(":")[0])) == newest
    assert log_version(Location(str(tmp_path), Passthrough()), found) == found
    assert log_version(Location(str(tmp_path), Passthrough()), "junk") == found


def test_a_version_is_another_one_when_its_entry_is(tmp_path: Path) -> None:
    location = named(tmp_path, "0.json", "1.json")
    seen = log_version(location, None)
    assert seen is not None
    entry = tmp_path / "_delta_log" / f"{1:020}.json"
    entry.write_text("another one, of another size")
    now = log_version(location, seen)
    assert now is not None
    assert now != seen
    os.replace(tmp_path / "_delta_log" / f"{0:020}.json", tmp_path / "_delta_log" / f"{2:020}.json")
    assert (log_version(location, now) or "").startswith("2:")
    assert log_version(location, "2:0") == log_version(location, None)


def test_a_version_of_a_store_is_told_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a table that was made anew may have an entry of the same name, size and second."""
    named(tmp_path, "0.json", "1.json")
    location = Location(f"s3://{tmp_path}", Passthrough())
    monkeypatch.setattr(Location, "filesystem", pafs.LocalFileSystem())
    seen = log_version(location, None)
    entry = tmp_path / "_delta_log" / f"{1:020}.json"
    kept, times = entry.read_text(), os.stat(entry)
    entry.write_text(kept[::-1])
    os.utime(entry, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert log_version(location, seen) not in (None, seen)
    entry.write_text(kept)
    assert log_version(location, None) == seen
    for size, told in ((0, False), (1 << 20, True), ((1 << 20) + 1, False)):
        entry.write_bytes(b"x" * size)
        assert (log_version(location, None) is not None) is told
    entry.unlink()
    assert (log_version(location, None) or "").startswith("0:")
    assert log_version(Location(f"s3://{tmp_path}/none", Passthrough()), None) is None


def test_a_version_of_a_store_that_does_not_answer_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def get_file_info(self, _: object) -> Any:
            raise OSError("no answer")

    monkeypatch.setattr(Location, "filesystem", Failing())
    assert log_version(Location("s3://bucket/t", Passthrough()), None) is None
