"""Locations, which writers spell in different ways: what they name, and what lies below a table. Plain Python.

Iceberg keeps a location as it was written and takes it literally: a percent sign is a part of the name. Some writers
encode it all the same, and one store has several schemes.
"""

from __future__ import annotations

import os
import posixpath
import re
from typing import NamedTuple
from urllib.parse import unquote

_LOCATION = re.compile(r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/]*))?)?(?P<path>.*)\Z", re.DOTALL)
_FAMILIES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs"}
_LOCAL = ""


class Parts(NamedTuple):
    """A location in its parts. ``scheme`` is empty for a plain path; nothing is decoded or cut off."""

    scheme: str
    authority: str
    path: str


def split(location: str) -> Parts:
    """``urlparse`` would cut a path off at ``#`` and ``?``, which names of files may hold."""
    match = _LOCATION.match(location)
    assert match is not None, "the pattern matches everything"
    return Parts((match["scheme"] or "").lower(), match["authority"] or "", match["path"])


def is_local(parts: Parts) -> bool:
    """A plain path, or a ``file:`` URI of this host in any of its forms."""
    return parts.scheme in ("", "file") and parts.authority in ("", "localhost")


class Place(NamedTuple):
    """What a location names: the store, and a path in it. Two spellings of one file give the same."""

    store: str
    path: str


class Below:
    """The location of a table, to tell what lies below it, and under which name.

    On local disks folders that are links are followed. Two names that differ only by percent-encoding count as one.
    """

    def __init__(self, location: str) -> None:
        self._folders: dict[str, str] = {}
        self._root = self.folder(location)

    def folder(self, location: str) -> Place:
        """The place of a folder."""
        parts = split(location)
        path = "/" + posixpath.normpath(f"/{parts.path}").lstrip("/")
        if is_local(parts):
            return Place(_LOCAL, self._real(path))
        # The rest of Azure's host differs between the schemes of one account.
        authority = parts.authority.partition(".")[0] if "@" in parts.authority else parts.authority
        return Place(f"{_FAMILIES.get(parts.scheme, parts.scheme)}://{authority}", path)

    def path(self, folder: str) -> str | None:
        """The path of a folder below the table, empty for the table's own; None where it lies elsewhere."""
        return self._below(self.folder(folder), self._root)

    def key(self, location: str) -> str | None:
        """What to compare a file by: the same for all spellings; None where it does not lie below the table."""
        parent, _, name = location.rpartition("/")
        place = self.folder(parent)
        return self._below(
            Place(place.store, decoded(posixpath.join(place.path, name))),
            Place(self._root.store, decoded(self._root.path)),
        )

    @staticmethod
    def _below(place: Place, root: Place) -> str | None:
        if place == root:
            return ""
        inside = place.store == root.store and place.path.startswith(f"{root.path.rstrip('/')}/")
        return place.path[len(root.path.rstrip("/")) + 1 :] if inside else None

    def _real(self, path: str) -> str:
        found = self._folders.get(path)
        if found is None:
            found = self._folders[path] = os.path.realpath(path)
        return found


def decoded(path: str) -> str:
    """The path without any percent-encoding, also where it was encoded twice: a key, not a path to open."""
    while "%" in path and (plain := unquote(path)) != path:
        path = plain
    return path
