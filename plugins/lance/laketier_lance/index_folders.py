"""Folders of segments on a local disk. Lance deletes files of indexes, and leaves the folders that they lay in."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from laketier.kit.looks import is_link
from laketier.spi import OrphanFile
from laketier_lance.location import local_path

log = logging.getLogger(__name__)

INDICES = "_indices"
SEGMENT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The id of a segment, which is the name of its folder below `INDICES`."""
SEGMENT_FILE = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]*")
"""The name of a file in it."""

FOLDER = "index-folder"
"""The kind of an empty folder, told as an orphan of no bytes."""
_STAGING = "staging"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def empty_folders(location: str, modified_before: int) -> dict[str, OrphanFile]:
    """The folders of segments without any file, in which nothing was made or deleted since the moment (in ms): a build
    that has just made its folder has not filled it yet. By their paths."""
    local = local_path(location)
    found = {}
    with suppress(FileNotFoundError, NotADirectoryError):
        for folder in [] if local is None else sorted((local / INDICES).iterdir()):
            modified = _empty_since(folder) if SEGMENT_ID.fullmatch(folder.name) else None
            if modified is not None and modified < modified_before:
                path = f"{INDICES}/{folder.name}"
                found[path] = OrphanFile(path, 0, modified, FOLDER)
    return found


def remove_folders(location: str, names: Iterable[str]) -> set[str]:
    """Remove those that are empty, and return the names of those that are gone. The system refuses to remove one that
    somebody fills meanwhile."""
    local = local_path(location)
    gone: set[str] = set()
    if local is None:
        return gone
    try:
        indices = os.open(local / INDICES, _OPEN)
    except OSError:  # nothing, or a link: what that leads to is not this dataset's
        return gone
    try:
        for name in names:
            if SEGMENT_ID.fullmatch(name) and _is_removed(indices, name):
                gone.add(name)
    finally:
        os.close(indices)
    return gone


def _is_removed(indices: int, name: str) -> bool:
    try:
        folder = os.open(name, _OPEN, dir_fd=indices)
        try:
            with suppress(FileNotFoundError):
                os.rmdir(_STAGING, dir_fd=folder)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=indices)
    except FileNotFoundError:
        return True
    except OSError as error:
        log.info("%s/%s stays: %s", INDICES, name, error)
        return False
    return True


def _empty_since(folder: Path) -> int | None:
    """When it became empty, in ms; None where it is not, or is a link."""
    try:
        if is_link(folder):
            return None
        inside = list(folder.iterdir())
        staging = [each for each in inside if each.name == _STAGING and not is_link(each)]
        if len(staging) < len(inside) or any(next(each.iterdir(), None) is not None for each in staging):
            return None
        return max(each.stat().st_mtime_ns // 1_000_000 for each in (folder, *staging))
    except OSError:
        return None
