"""Disks and networks change a bit now and then. Whatever a library says of the file, it is an error of laketier's. Of a
whole file it may say something, too: that there is no memory for it. Then the file is not damaged."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from laketier.spi import (
    Conflict,
    CorruptTable,
    Feature,
    FeatureNotSupported,
    IncompatibleTable,
    LaketierError,
    RolledBack,
    SchemaChanged,
    SnapshotNotFound,
    TableChanged,
    TableNotFound,
    UnsupportedType,
)
from laketier_conformance import apart
from laketier_conformance.children import Child, ChildDied
from laketier_conformance.expect import expect, told
from laketier_conformance.lake import Table, ids_of
from laketier_conformance.outside import contents, is_behind_a_server, local_folder

FLIPS = 32
"""Bits of all files together. More of them are near the end, where many formats say what is where."""
NO_MEMORY = ("MemoryError", "ArrowMemoryError")
_GOLDEN = 0.618034
ANSWERS = (
    Conflict, CorruptTable, FeatureNotSupported, IncompatibleTable, RolledBack, SchemaChanged, SnapshotNotFound,
    TableChanged, TableNotFound, UnsupportedType,
)  # fmt: skip
"""Errors that say how a table is, on which a caller acts."""
DECODERS = ("json", "base64", "gzip", "pyarrow", "pydantic")
"""Packages whose functions make objects of what was read, and so want memory."""
WANTS = 3
"""Calls of these that find none, of each look: the first, one in the middle, and the last."""
_ENDS = ("<module>", "close", "__exit__", "__del__")
"""What has to go well for the process to go on."""


def test_a_bit_of_a_file_has_another_value(
    table: Table, folder: Path, children: Callable[[int], list[Child]], unproven: Callable[[str, str], None]
) -> None:
    """Rows may be others, where a format has no checksum. A library may end the process by a signal, which nobody
    passes over."""
    table.append(0, ids_of(0, rows=40))
    table.append(1)
    found = contents(local_folder(table.info.location))
    if not found and not is_behind_a_server(table.lake.location):
        # A database may be one file. Those of a server that runs are its own: to put one back would damage it.
        found = contents(folder)
    before = {file: content for file, content in found.items() if content}
    if not before:
        unproven("damaged files", "no file of the table is in the folder that `setup` got")
        return
    (child,) = children(1)
    for number, (file, place) in enumerate(_places(before)):
        content = before[file]
        damaged = content[place] ^ 1 << number % 8
        apart.write(file, content[:place] + bytes([damaged]) + content[place + 1 :])
        look = "rows alone" if number % 4 else "watermark"
        failed, code = _told(child, table, look)
        apart.write(file, content)
        what = f"bit {number % 8} of byte {place} of the {len(content)} in {file.name} is another one, and the {look}"
        # A number of another value may ask for more memory than there is, and nobody can tell whose want it is.
        assert not failed or failed.startswith(NO_MEMORY), f"{what}: no error of laketier's, but {failed}"
        assert code <= 0, (
            f"{what}: expected rows, or an error of laketier's, found that the process ended with {code}. What is no "
            "`Exception`, such as a panic in Rust, passes each `except Exception`"
        )
        if code:
            (child,) = children(1)


def _told(child: Child, table: Table, look: str) -> tuple[str, int]:
    """The error that is none of laketier's, or an empty text, and what the process ended with, or 0."""
    try:
        answer = child.ask(table.lake, "tell", table=str(table.path), what=look)
    except ChildDied as death:
        return "", death.code
    return answer.get("failed", ""), 0


def _places(before: Mapping[Path, bytes]) -> list[tuple[Path, int]]:
    """The newest file of each folder and suffix, in turns, and places in it that are spread."""
    newest: dict[tuple[Path, str], Path] = {}
    for file in sorted(before, key=lambda file: file.stat().st_mtime_ns):
        newest[file.parent, file.suffix] = file
    files = sorted(newest.values())
    found = []
    for number in range(FLIPS):
        file, part = files[number % len(files)], number * _GOLDEN % 1
        size = len(before[file])
        where = part if number // len(files) % 3 == 0 else 1 - part * part / 2
        found.append((file, min(size - 1, int(where * size))))
    return found


def test_there_is_no_memory_for_a_document(table: Table) -> None:
    """While somebody reads, looks for the watermark, lists or makes sure that the table is there. Who is told that it
    is damaged, or not there, restores a backup or makes it anew, and all is well with it."""
    table.append(0)
    table.append(1)
    for what, look in _looks(table).items():
        with _memory_ends(None) as calls:
            whole = look()
        first_calls = calls[0]
        for at in sorted({number * (first_calls - 1) // (WANTS - 1) for number in range(WANTS)} if first_calls else ()):
            said = f"{what}, and call {at} of {first_calls} of a library that decodes finds no memory"
            try:
                with _memory_ends(at):
                    found = look()
            except ANSWERS as error:
                pytest.fail(f"{said}: expected an error that tells of no table, found {told(error)}")
            except (MemoryError, LaketierError):
                continue
            except Exception as error:  # noqa: BLE001 - reported
                pytest.fail(f"{said}: expected that, or an error of laketier's, found {told(error)}")
            expect(found, whole, f"{said}: the answer")
    expect(table.ids, ids_of(0) + ids_of(1), "the rows, when there is memory again")


def _looks(table: Table) -> Mapping[str, Callable[[], object]]:
    lake = table.lake

    def opened() -> object:
        mark = table.watermark()
        return None if mark is None else mark.token.epoch

    looks: dict[str, Callable[[], object]] = {
        "a table is read": lambda: table.ids,
        "a driver looks for the watermark": opened,
        "a table is made that is there": lambda: lake.create_amid_faults(name=str(table.path)).path,
    }
    if lake.declares(Feature.HISTORY):
        looks["the history is listed"] = lambda: [line.snapshot_id for line in table.history.snapshots(9)]
    if lake.declares(Feature.INCREMENTAL_READ):
        looks["changes are told"] = lambda: table.changes.plan(table.latest - 1, table.latest).schema.names
    return looks


@contextmanager
def _memory_ends(at: int | None) -> Iterator[list[int]]:
    """Call ``at`` of the functions of `DECODERS`, in this thread, ends as one does that gets no memory. Their number,
    once the block has ended."""
    calls = [0]

    def called(frame: FrameType, event: str, _: object) -> None:
        name, package = frame.f_code.co_name, str(frame.f_globals.get("__name__")).partition(".")[0]
        if event == "call" and package in DECODERS and name not in _ENDS:
            calls[0] += 1
            if calls[0] - 1 == at:
                raise MemoryError

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield calls
    finally:
        sys.settrace(before)
