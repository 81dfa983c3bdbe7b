"""Folders of which not all files count: another table's own rules say which do.

Whoever reads all files there gets rows that were deleted, replaced or written twice, and no error. So such folders are
known by what their writers put beside the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from laketier.spi import IncompatibleTable

MARKS = ("_delta_log", "_spark_metadata", ".hoodie", "_versions", "_laketier_manifests")
"""Folders that say what of the files beside them counts."""
_ACID = r"base_\d{7}(_v\d+)?|(delete_)?delta_\d{7}_\d{7}(_\d{4})?(_v\d+)?"
"""Folders of Hive's transactional tables: some hold rows, others those that are deleted, and aborted ones stay."""
_IN_CATALOG = r"ducklake-[0-9a-f]{8}-[0-9a-f-]{27}(-delete)?\.parquet"
"""Files of which a database says whether they count."""
_MARK = re.compile(rf"({'|'.join(map(re.escape, MARKS))}|{_ACID}|{_IN_CATALOG})\Z")
INSIDE = {
    "metadata": re.compile(r".*\.metadata\.json(\.gz)?\Z", re.DOTALL),
    "snapshot": re.compile(r"snapshot-\d+\Z"),
}
"""The folder beside the files → names of the documents in it that say what counts."""


def table_mark(folder: str, names: Iterable[str]) -> str | None:
    """Find what makes a folder another table's: the first of ``names``, those directly in ``folder``, that only a
    table has. ``folder``: its path, of which the last name counts, or empty. Any room, any side; looks at no storage.
    """
    inside = INSIDE.get(folder.rstrip("/").rpartition("/")[2])
    found = (name for name in names if _MARK.match(name) or (inside is not None and inside.match(name)))
    return min(found, default=None)


def mark_among(paths: Iterable[str]) -> str | None:
    """The same for paths below one folder, as object stores list them: the path of the mark. What lies below hidden
    folders (``_x``, ``.x``) is not looked at."""
    for path in paths:
        above = ""
        for name in path.split("/"):
            if table_mark(above, (name,)) is not None:
                return f"{above}{name}"
            if name.startswith(("_", ".")):
                break
            above = f"{above}{name}/"
    return None


def taken_for_files(mark: str, where: str) -> IncompatibleTable:
    """The error of who reads folders as they lie, over a ``mark`` in one."""
    return IncompatibleTable(
        "the folder is a table of its own, and no files to be taken as they lie",
        where=where,
        why=f"it holds {mark!a}, which says what of the other files counts: rows that were deleted or replaced would "
        "come back",
        fix="Read it as such a table, or put the files elsewhere. Where all files count, remove that name.",
    )
