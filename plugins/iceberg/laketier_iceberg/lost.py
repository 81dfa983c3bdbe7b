"""Tables that the embedded catalog does not know any more, while their rows are there: whether somebody dropped them,
or the catalog lost them. Driver.

A drop takes a table out of the catalog first, and its files after that. So it leaves a mark beforehand, and deletes
that last: metadata without one are those of a table that nobody dropped here. Where the files stay, so does the mark,
and it names what commits left that were killed before the drop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePath

from laketier.kit.durable import fsync_directory, fsync_file
from laketier.kit.looks import names_in
from laketier.kit.storage_errors import naming_storage_errors
from laketier_iceberg.neighbours import METADATA_SUFFIX
from laketier_iceberg.stored import DAMAGE, document_at

METADATA = "metadata"
_NUMBER = re.compile(r"(\d{1,9})-")
_MARK = re.compile(r"([0-9a-f-]{36})-(\d{1,9})\.dropped")


def mark_of_drop(place: Path, table_uuid: str, metadata: str) -> str | None:
    """Make the mark of a table whose current metadata file is ``metadata``, durable. Returns its path, relative to
    ``place``; None where its metadata are elsewhere, or gone. A table that is committed to after that, as the drop was
    killed, is not meant by it. Raises `StorageError`."""
    path = f"{METADATA}/{table_uuid}-{_number(PurePath(metadata).name)}.dropped"
    with naming_storage_errors("a table was dropped"):
        try:
            (place / path).touch()  # there already, where a drop was killed
            fsync_file(place / path)
            fsync_directory(place / METADATA)
        except FileNotFoundError:
            return None
    return path


def name_left(place: Path, mark: str, metadata: str) -> None:
    """Write into the mark of a table that was dropped, and whose files stay, which of them are newer than its
    ``metadata``: commits that were killed left them, and none of them can be committed any more. Durable. Raises
    `StorageError`."""
    newest = _number(PurePath(metadata).name)
    with naming_storage_errors("a table was dropped"):
        names = sorted(name for name in names_in(place / METADATA) if METADATA_SUFFIX in name)
        left = [name for name in names if _number(name) > newest]
        if left:
            (place / mark).write_text("\n".join([*left, ""]))
            fsync_file(place / mark)


def is_alone(place: Path, mark: str) -> bool:
    """Whether nothing but the mark is left of the metadata. Raises `OSError`."""
    return [f"{METADATA}/{name}" for name in names_in(place / METADATA)] == [mark]


def lost_metadata(place: Path) -> str | None:
    """A metadata file in the place of a table that the catalog does not know, if it is of a table with rows that nobody
    dropped; None where there is none. Raises `StorageError`."""
    with naming_storage_errors("a table was looked for"):
        names = set(names_in(place / METADATA))
        found = [match for match in map(_MARK.fullmatch, names) if match is not None]
        marks = [(match[1], int(match[2]), _named_in(place / METADATA / match[0])) for match in found]
    for name in sorted((name for name in names if METADATA_SUFFIX in name), key=_number, reverse=True):
        for table_uuid in _with_rows(place / METADATA / name, names):
            if not any(
                dropped == table_uuid and (upto >= _number(name) or name in left) for dropped, upto, left in marks
            ):
                return f"{METADATA}/{name}"
    return None


def _named_in(mark: Path) -> list[str]:
    """A name that is cut, as its writer was killed, is of no file."""
    try:
        return mark.read_text(errors="replace").split("\n")
    except FileNotFoundError:  # who drops the table is done
        return []


def _with_rows(file: Path, names: set[str]) -> Iterator[str]:
    """The id of the table whose metadata a file is: of one that had a commit, and that was committed. What a driver
    left that went on beside a drop names metadata before its own that are gone."""
    try:
        stored = document_at({}, str(file))
        log = [PurePath(entry["metadata-file"]).name for entry in stored.get("metadata-log") or []]
        is_empty = stored.get("current-snapshot-id") in (None, -1)
        table_uuid = str(stored["table-uuid"])
    except (OSError, KeyError, TypeError, AttributeError, *DAMAGE):
        return
    if not is_empty and (not log or log[-1] in names):
        yield table_uuid


def _number(name: str) -> int:
    match = _NUMBER.match(name)
    return int(match[1]) if match is not None else 0
