"""A part of the system fails: the read raises, and never gives fewer rows."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from laketier.spi import ConfigError, LogSplit, OffsetsExpired, StorageError, TableError, TableLog
from laketier_conformance.children import ChildDied
from laketier_conformance.expect import NotShown, expect, told
from laketier_conformance.interposed.effects import Effect, look_of
from laketier_conformance.interposed.probe import why_not
from laketier_conformance.interposed.supervisor import DONE, Supervisor
from laketier_source_conformance.children import AskedFailed, Processes
from laketier_source_conformance.reads import Read, carried, read_range, read_splits, whole
from laketier_source_conformance.system import Table, ordered

_MOST = 60
"""Looks of one read that fail, one by one."""
_READS = ("read", "pread64", "readv", "preadv", "preadv2")


def _filled(table: Table) -> tuple[TableLog, list[LogSplit]]:
    for count in (3, 1, 5):
        table.append(count)
    log = table.log()
    return log, list(log.plan(whole(log.bounds())))


# -- files that are damaged between a plan and a read ------------------------------------------------------------------


def _half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _last_byte(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def _last_line(path: Path) -> None:
    data = path.read_bytes().rstrip(b"\n")
    path.write_bytes(data[: data.rfind(b"\n") + 1])


def _other(path: Path) -> None:
    other = path.with_name(f".{path.name}.other")
    other.write_bytes(b"")
    other.replace(path)


_DAMAGES: dict[str, Callable[[Path], None]] = {
    "is gone": Path.unlink,
    "was cut in half": _half,
    "is empty": _empty,
    "lost its last byte": _last_byte,
    "lost its last line": _last_line,
    "was replaced by an empty one": _other,
}


@pytest.mark.parametrize("which", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize("damage", _DAMAGES)
def test_a_file_that_is_damaged_after_the_plan_costs_no_row(table: Table, damage: str, which: int) -> None:
    log, splits = _filled(table)
    path = table.ask("files")[which]
    _DAMAGES[damage](path)
    _raises_or_is_whole(table, lambda: read_splits(carried(log), splits), f"the {path.name} of a plan {damage}")


@pytest.mark.parametrize("damage", _DAMAGES)
def test_a_file_that_is_damaged_before_the_plan_costs_no_row(table: Table, damage: str) -> None:
    """Of a range that is known: by a round that was killed, or by the bounds of a moment ago."""
    log, _ = _filled(table)
    wanted = whole(log.bounds())
    path = table.ask("files")[-1]
    _DAMAGES[damage](path)
    _raises_or_is_whole(table, lambda: read_range(table.log(), wanted), f"{path.name} {damage}, and a range is planned")


def test_a_file_that_is_cut_in_the_midst_of_a_read_costs_no_row(table: Table, processes: Processes) -> None:
    """Its length was looked at before: what is read then ends earlier. In a process of its own: the system ends one
    that has mapped the file into its memory."""
    count = table.append_pages(40)
    log = table.log()
    found, others = processes.begun(log, list(log.plan(whole(log.bounds()))))
    _half(max(table.ask("files"), key=lambda path: path.stat().st_size))
    try:
        found += others()
    except Exception:  # noqa: BLE001 - any error will do
        return
    expect(found, count, "rows of a read in whose midst a file was cut in half, and no error")


def _raises_or_is_whole(table: Table, read: Callable[[], Read], doing: str) -> None:
    """Bad records in place of rows are told, and no loss."""
    try:
        found = read()
    except Exception:  # noqa: BLE001 - any error will do
        return
    lost = [row for row in ordered(table.rows) if row not in ordered(found.rows)]
    assert not lost or len(found.bad) >= 1, (
        f"{doing}: expected an error or each row, found {len(found.rows)} of {len(table.rows)} rows and no error"
    )
    extra = [row for row in ordered(found.rows) if row not in ordered(table.rows)]
    expect(extra, [], f"{doing}: rows that were never appended")
    expect(len(found.rows), len(set(ordered(found.rows))), f"{doing}: rows, each once")


# -- calls of the system that fail -------------------------------------------------------------------------------------


class _Looks:
    """The looks at files below a folder of one process. Look number ``at`` ends in ``decided``."""

    def __init__(self, folder: Path, at: int, decided: int, only: Sequence[str]) -> None:
        self._folder, self._at, self._decided, self._only = os.path.realpath(folder), at, decided, only
        self.seen: list[Effect] = []

    def decide(self, look: Effect) -> int:
        if look.call not in self._only or not any(path.startswith(f"{self._folder}/") for path in look.on):
            return 0
        self.seen.append(look)
        return self._decided if len(self.seen) - 1 == self._at else 0


@contextmanager
def _supervised(looks: _Looks) -> Iterator[dict[str, str]]:
    with (
        tempfile.TemporaryDirectory(prefix="looks-") as place,
        Supervisor(looks.decide, Path(place, "s"), look_of) as by,
    ):
        yield {"supervised": str(by.path), "sees": "looks"}


def _each_look(table: Table, processes: Processes, decided: int, only: Sequence[str], happened: str) -> None:
    """Read in processes of their own, each next look of which ends in ``decided``."""
    if (reason := why_not()) is not None:
        raise NotShown("calls of the system", reason)
    log, splits = _filled(table)
    folder, take = table.system.harness.folder, processes.readers(log, splits)
    for at in range(_MOST):
        looks = _Looks(folder, at, decided, only)
        child = take()
        with _supervised(looks) as more:
            try:
                found = processes.read(log, splits, child, **more)
            except (AskedFailed, ChildDied):
                found = None
            finally:
                child.stop()
        if len(looks.seen) <= at:
            break
        if found is None:
            continue
        lost = [row for row in ordered(table.rows) if row not in ordered(found.rows)]
        assert not lost or found.bad, (
            f"{happened} look {at + 1} of a read, {looks.seen[at].call} of {Path(looks.seen[at].on[0]).name}: expected "
            f"an error or each row, found {len(found.rows)} of {len(table.rows)} rows and no error"
        )
        expect(len(found.rows), len(set(ordered(found.rows))), f"{happened} look {at + 1} of a read: rows, each once")
    if at == 0:
        if not table.system.has("files"):  # a system behind a network: its harness says why, or that it left them out
            table.ask("files")
        raise NotShown("calls of the system", "a read looks at no file below the harness's folder")


def test_a_read_of_a_file_that_fails_costs_no_row(table: Table, processes: Processes) -> None:
    _each_look(table, processes, errno.EIO, _READS, "EIO from")


def test_a_file_that_ends_early_costs_no_row(table: Table, processes: Processes) -> None:
    """A read gives nothing, as at the end of a file that was cut."""
    _each_look(table, processes, DONE, _READS, "nothing came from")


def test_a_file_that_can_not_be_opened_costs_no_row(table: Table, processes: Processes) -> None:
    _each_look(table, processes, errno.EACCES, ("open", "openat", "openat2"), "EACCES from")


def test_a_file_that_is_not_found_costs_no_row(table: Table, processes: Processes) -> None:
    only = ("open", "openat", "openat2", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2")
    _each_look(table, processes, errno.ENOENT, only, "ENOENT from")


# -- a system that does not answer -------------------------------------------------------------------------------------


def test_a_system_that_does_not_answer_is_told(table: Table) -> None:
    log, splits = _filled(table)
    wanted = whole(log.bounds())
    before = log.bounds()
    with table.system.call("cut_off"):
        for doing, ask in {
            "`bounds` is asked for": log.bounds,
            "a range is planned and read": lambda: read_range(log, wanted),
            "a split is read": lambda: read_splits(carried(log), splits),
            "a table is opened": lambda: table.log().bounds(),
        }.items():
            _fails(table, ask, doing)
        with_tables = _tables(table)
        assert with_tables != [], "a system that does not answer: `list_tables` gave no tables, as if all were dropped"
    expect(log.bounds(), before, "`bounds` after a system answers again")
    table.expect_rows(read_range(log).rows, "a log is read by the same log after its system answers again")
    table.expect_rows(read_splits(carried(log), splits).rows, "an earlier plan is read after its system answers again")


def _tables(table: Table) -> list[str] | None:
    try:
        return table.system.source().list_tables()
    except Exception:  # noqa: BLE001 - any error will do
        return None


def _fails(table: Table, ask: Callable[[], object], doing: str) -> None:
    """By an error after which a round is tried again. `OffsetsExpired` is none: a user may have said to skip those."""
    doing = f"{doing}, and the system does not answer"
    try:
        found = ask()
    except OffsetsExpired as error:
        raise AssertionError(f"{doing}: expected StorageError, found {told(error)}") from error
    except (StorageError, TableError, ConfigError, OSError):
        return
    except Exception as error:
        raise AssertionError(f"{doing}: expected StorageError, found {told(error)}") from error
    assert isinstance(found, Read), f"{doing}: expected StorageError, found {found!r:.200}"
    table.expect_rows(found.rows, f"{doing}: each row, or StorageError")
