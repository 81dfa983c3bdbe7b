"""Whether the folders of one table may be tables of their own, as where a folder one level too high was named."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from laketier.codecs.said import shown
from laketier.spi import IncompatibleData
from laketier.tables.hive import values_of

_MOMENT = re.compile(r"[0-9][0-9_:.T-]*\Z", re.ASCII)
_FIX = "Adopt each of these folders by itself, or move one of them away."


def folders_told(files: Iterable[tuple[str, Collection[str]]], *, undo: str, where: str) -> tuple[str, ...]:
    """What the users of a table have to know of the folders below its own: sentences, none where their names are times,
    or there is one of them that names no column. ``files``: the path and the columns of each. ``undo``: how the table
    is taken back, an imperative clause. Raises `IncompatibleData` for two folders without a column in common."""
    found: dict[str, set[str]] = {}
    columns = list(files)
    for path, names in columns:
        head, slash, _ = path.partition("/")
        found.setdefault(head if slash else "", set()).update(names)
    several = sorted((head, names) for head, names in found.items() if names)
    for head, names in several[1:]:
        if not names & several[0][1]:
            raise IncompatibleData(
                f"{_name(several[0][0])} and {_name(head)} have no column in common",
                where=where,
                why="they are several tables, as it seems",
                fix=_FIX,
            )
    unread = _unread(columns)
    told: tuple[str, ...] = ()
    if unread:
        told = (
            f"Its folders name {', '.join(map(shown, unread))}, and no file has such a column: the table has none.",
            f"To have it there, {undo} and adopt the folder again with partitions.",
        )
    heads = [head for head, _ in several if head and not (unread and values_of(f"{head}/"))]
    if len(heads) < 2 or all(map(_MOMENT.match, heads)):
        return told
    return (
        *told,
        f"Its files lie in {len(heads):,} folders, such as {shown(heads[0])} and {shown(heads[1])}, and are one table.",
        f"If each of the folders is a table of its own, {undo} and adopt them one by one.",
    )


def _unread(files: Iterable[tuple[str, Collection[str]]]) -> list[str]:
    """Columns in the names of folders (``day=2026-01-01``) that no file has. Most readers fold case."""
    named: dict[str, None] = {}
    columns: set[str] = set()
    folders: set[str] = set()
    for path, names in files:
        columns.update(map(str.lower, names))
        folder = path.rpartition("/")[0]
        if folder not in folders:
            folders.add(folder)
            named.update((name, None) for name, _ in values_of(path))
    return [name for name in named if name.lower() not in columns]


def _name(head: str) -> str:
    return f"the files in {shown(head)}/" if head else "the files in the folder itself"
