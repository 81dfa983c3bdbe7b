"""Where the files are that were taken, and whether they are still what they were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from laketier.connectors.files.files import Files, LandedFile
from laketier.connectors.files.folder import Folder
from laketier.connectors.files.identity import renamed
from laketier.connectors.files.local import escaped
from laketier.connectors.files.places import Places
from laketier.spi import OffsetsExpired, OffsetsRewritten, StorageError

BUCKET = "files"
_LOOKS = 2
"""A file that is renamed while its folder is listed may be missing in the listing."""


def look_up(folder: Folder, entries: Sequence[LandedFile]) -> list[LandedFile | None]:
    """These files as they are now, None for one that is gone. One that was renamed is there under its new name."""
    now = folder.look_at([entry.path for entry in entries])
    for _ in range(_LOOKS):
        if all(found is not None or not entry.inode for entry, found in zip(entries, now, strict=True)):
            break
        columns = zip(*((one.path, one.size, one.mtime_ns, one.inode) for one in entries), strict=True)
        taken = Files.of(*map(list, columns))
        listed = folder.listed().files
        for at, known in zip(*renamed(listed, listed.places_in(taken), taken), strict=True):
            now[known] = now[known] or listed[at]
    return now


def found_at(
    folder: Folder, entries: Sequence[LandedFile], places: Places, start: int, table: str
) -> list[LandedFile | None]:
    """Look files up, and check them. ``start``: the offset of the first. Raises `StorageError` where they are missing
    in another folder than they were seen in, and as `check_unchanged`."""
    before = folder.number
    now = look_up(folder, entries)
    gone = [start + at for at, found in enumerate(now) if found is None]
    # Before and after: the disk may be mounted again in between.
    numbers = [number for number in (before, folder.number) if number is not None] if gone else []
    if any(places.are_elsewhere(number, gone) for number in numbers):
        raise exchanged(folder, entries[gone[0] - start].path, places.file)
    check_unchanged(entries, now, start, table)
    return now


def exchanged(folder: Folder, missing: str | None = None, document: str | None = None) -> StorageError:
    """That the table's folder is another one by now. ``document``: the one that says where files were seen."""
    fix = (
        "Mount it again, and the next round goes on. Move files that were written below the mount into it, with their "
        "times."
    )
    if document is not None:
        fix += (
            " If the folder was made anew, and the files that are missing were deleted on purpose, delete "
            f"{document}: they count as deleted then."
        )
    return StorageError(
        "the table's folder is another one than its files were seen in"
        + ("" if missing is None else f": {escaped(missing)!r} is not there"),
        where=escaped(folder.open()[1]),
        why="its disk, or network share, is not mounted, or it was deleted and made anew",
        fix=fix,
    )


def check_unchanged(entries: Sequence[LandedFile], now: Sequence[LandedFile | None], start: int, table: str) -> None:
    """Raises `OffsetsExpired` for files that are gone, and `OffsetsRewritten` for one that has changed. ``start``: the
    offset of the first."""
    gone = [start + at for at, found in enumerate(now) if found is None]
    if gone:
        first = entries[gone[0] - start]
        # A listing of an object store shows it as a file, without the slash; and what is asked for by name as a folder.
        slash = "" if first.inode else "; or its key ends in a slash, as a folder's does, and can't be opened as a file"
        raise OffsetsExpired(
            f"the file {escaped(first.path)!r} (offset {gone[0]}) is gone"
            + (f", and {len(gone) - 1} more up to offset {gone[-1]}" if len(gone) > 1 else ""),
            where=table,
            why=f"it was deleted, or moved out of the table's folder, after it was taken and before it was read{slash}",
            fix="Restore the file, with its former time. To continue without it, set on-expired to skip: the table "
            "then records which offsets it never read.",
            gone={BUCKET: [(at, at + 1) for at in gone]},
        )
    for at, (entry, found) in enumerate(zip(entries, now, strict=True), start):
        if found is not None and (found.size, found.mtime_ns) != (entry.size, entry.mtime_ns):
            raise rewritten(entry, found, at, table)


def rewritten(taken: LandedFile, found: LandedFile, offset: int, table: str) -> OffsetsRewritten:
    """That the file ``taken`` is another now."""
    return OffsetsRewritten(
        f"the file {escaped(taken.path)!r} (offset {offset}) has changed since it was taken",
        where=table,
        why=f"it had {taken.size} bytes of {_utc(taken)}, and has {found.size} of {_utc(found)}",
        fix="Restore the file, with its former time, and land new data under a new name.",
    )


def _utc(entry: LandedFile) -> str:
    return str(np.datetime64(entry.mtime_ns, "ns")) + "Z"
