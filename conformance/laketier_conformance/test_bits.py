"""Disks and networks change a bit now and then. Whatever a library says of the file, it is an error of laketier's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from laketier_conformance import apart
from laketier_conformance.children import Child, ChildDied
from laketier_conformance.lake import Table, ids_of
from laketier_conformance.outside import contents, is_behind_a_server, local_folder

FLIPS = 32
"""Bits of all files together. More of them are near the end, where many formats say what is where."""
NO_MEMORY = ("MemoryError", "ArrowMemoryError")
_GOLDEN = 0.618034


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
