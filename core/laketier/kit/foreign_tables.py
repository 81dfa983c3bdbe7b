"""Folders of which not all files count: another table's own rules say which do.

Whoever reads all files there gets rows that were deleted, replaced or written twice, and no error. So such folders are
known by what their writers put beside the files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from laketier.spi import IncompatibleTable

MARKS = ("_delta_log", "_spark_metadata", ".hoodie", "_versions", "_laketier_manifests")
"""Names of what says which of the files beside it count."""
_MARKS = frozenset(MARKS)
_ACID = re.compile(r"(base_\d{7}(_v\d+)?|(delete_)?delta_\d{7}_\d{7}(_\d{4})?(_v\d+)?)\Z", re.ASCII)
"""Folders of Hive's transactional tables: some hold rows, others those that are deleted, and aborted ones stay."""
_IN_CATALOG = re.compile(r"ducklake-[0-9a-f]{8}-[0-9a-f-]{27}(-delete)?\.parquet\Z")
"""Files of which a database says whether they count."""
_TOGETHER = ("snapshot", "schema", "manifest")
"""Folders that one kind of table has, all of them. Each name alone is common."""
INSIDE = "metadata"
"""A folder that says which of the files beside it count, where one of its own files is such a document."""
_DOCUMENT = re.compile(r"(v\d+|\d{5,}-[^/]+)(\.gz)?\.metadata\.json(\.gz)?\Z", re.ASCII)


def table_mark(folder: str, files: Iterable[str], folders: Collection[str]) -> str | None:
    """Find what makes a folder another table's: the first of the names that only a table has. Any room, any side; looks
    at no storage. ``folder``: its path, of which the last name counts, or empty. ``files``, ``folders``: the names
    directly in it. A document in `INSIDE` makes the folder above a table's: ask for both.
    """
    is_inside = folder.rstrip("/").rpartition("/")[2] == INSIDE
    found = [name for name in folders if name in _MARKS or _ACID.match(name)]
    if all(name in folders for name in _TOGETHER):
        found.append(_TOGETHER[0])
    found += [name for name in files if _is_mark(name, is_inside)]
    return min(found, default=None)


def mark_among(paths: Iterable[str]) -> str | None:
    """The same for paths below one folder, as object stores list them: the path of the mark. Paths of folders end with
    a slash. What lies below hidden folders (``_x``, ``.x``) is not looked at."""
    folders: dict[str, set[str]] = {"": set()}
    hidden: set[str] = set()
    found: list[str] = []
    for path in paths:
        folder, slash, name = path.rpartition("/")
        above = f"{folder}{slash}"
        if above not in folders and above not in hidden:
            _enter(above, folders, hidden)
        if above in folders and _is_mark(name, above == f"{INSIDE}/" or above.endswith(f"/{INSIDE}/")):
            found.append(path)
    for above, names in folders.items():
        mark = table_mark(above, (), names)
        if mark is not None:
            found.append(f"{above}{mark}")
    return min(found, default=None)


def taken_for_files(mark: str, where: str) -> IncompatibleTable:
    """The error of who reads folders as they lie, over a ``mark`` in one."""
    return IncompatibleTable(
        "the folder is a table of its own, and no files to be taken as they lie",
        where=where,
        why=f"it holds {mark!a}, which says what of the other files counts: rows that were deleted or replaced would "
        "come back",
        fix=f"Read it as such a table, or put the files elsewhere. Do not delete {mark!a}: the table would be lost.",
    )


def _is_mark(file: str, is_inside: bool) -> bool:
    """Whether a file's name is one. ``is_inside``: whether it lies in `INSIDE`."""
    if is_inside and _DOCUMENT.match(file):
        return True
    return file in _MARKS or (file.startswith("ducklake-") and _IN_CATALOG.match(file) is not None)


def _enter(folder: str, folders: dict[str, set[str]], hidden: set[str]) -> None:
    """Note the folders of a path, each in the one above it, down to the first that is hidden."""
    above = ""
    for name in folder.split("/")[:-1]:
        folders[above].add(name)
        if name.startswith(("_", ".")):
            hidden.add(folder)
            return
        above = f"{above}{name}/"
        folders.setdefault(above, set())
