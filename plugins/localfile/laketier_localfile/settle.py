"""Moving published files to where plain readers look for them, and superseded ones away.

**Why the manifest comes first.** A commit has two effects: its manifest, which is atomic, and the names of its data
files, which are not. If files were renamed first, a plain reader would see files of a commit that may still lose, and
a crash would leave files that nobody may delete and nobody may keep. So the manifest is published first, and the
renames are *rolled forward*: they are part of a commit that has already landed, they are idempotent, and whoever
opens the table next finishes them before it does anything else. Hence

- a loser never shows anything, and nothing is ever taken back;
- a crash after k of n renames loses nothing: our reader finds a file in whichever place it is, and the next writer
  moves the rest;
- only the newest manifest can be unfinished, because none is published on top of an unfinished one;
- plain readers see only files of published commits. For them a commit is atomic per file, not as a whole, and an
  overwrite or upsert takes the old files away before it shows the new ones: they may see too few rows for a moment,
  never both.

A move is link, sync the target's folder, unlink. A rename would be one call, but it replaces a file of the same name
without a word, and across two folders a power failure may keep the removal and lose the new name.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from laketier.kit import LocalFolder
from laketier.kit.failpoints import failpoint
from laketier.kit.manifests import FileEntry, Manifest, ManifestLog, files_before
from laketier.spi import CommitError, CorruptTable
from laketier_localfile.layout import SUPERSEDED, staged_path, superseded_path

log = logging.getLogger(__name__)

_CHUNK = 1 << 20


def settle(manifests: ManifestLog, head: Manifest) -> None:
    """Roll the newest commit forward: its files into place, and what it superseded away.

    Idempotent, and safe beside another process that does the same. Raises `CorruptTable` when a file of the commit
    is nowhere, and `OSError` or `CommitError` when the file system refuses; the commit has landed all the same.
    """
    if head.resets:
        _retire(manifests.location, [entry.path for entry in files_before(manifests, head)])
    elif head.removed:
        _retire(manifests.location, head.removed)
    _promote(manifests.location, [entry for entry in head.added if not entry.is_open])


def locate(location: Path, path: str) -> Path | None:
    """Where the data file ``path`` is now, None when it is nowhere. It moves only forward, from staged to final to
    superseded, and is always in at least one place: hence the order, and the second look at the final one. Raises
    `OutsideTable` for a path, or a link in its place, that leads out of the table."""
    folder = LocalFolder(location)
    for place in (path, staged_path(path), path, superseded_path(path)):
        if folder.status(place) is not None:
            return location / place
    return None


def _promote(location: Path, entries: Iterable[FileEntry]) -> None:
    folder = LocalFolder(location)
    folders: set[str] = set()
    staged: list[str] = []
    for entry in entries:
        source, home = staged_path(entry.path), _folder_of(entry.path)
        if home not in folders:
            if home:
                folder.make_folders(home)
            folders.add(home)
        if _link(folder, source, entry.path) or _is_settled(location, entry):
            staged.append(source)
        failpoint("publish.mid_renames")
    failpoint("publish.after_renames_before_sync")
    _sync_and_unlink(folder, folders, staged)


def _retire(location: Path, paths: Iterable[str]) -> None:
    folder = LocalFolder(location)
    gone: list[str] = []
    folders: set[str] = set()
    folder.make_folders(SUPERSEDED)
    for path in paths:
        target = superseded_path(path)
        folders.add(_folder_of(path))
        if _link(folder, path, target):
            gone.append(path)
        elif _link(folder, staged_path(path), target):  # it was still open
            gone.append(staged_path(path))
        elif folder.status(target) is None:
            log.warning("%s/%s was to be superseded and is missing; time travel to it is not possible", location, path)
        failpoint("publish.mid_retire")
    _sync_and_unlink(folder, [SUPERSEDED], gone)
    # Also those of files that are gone already: whoever unlinked them may have been killed before it synced.
    for home in folders:
        with suppress(FileNotFoundError):
            folder.sync_folder(home)


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _link(folder: LocalFolder, source: str, target: str) -> bool:
    """Give ``source`` the second name ``target``. True when it has it now, False when there is no ``source``."""
    try:
        folder.link(source, target)
    except FileNotFoundError:
        return False
    except FileExistsError as error:
        there, wanted = folder.status(target), folder.status(source)
        if wanted is None:
            return False
        if there is not None and not os.path.samestat(there, wanted) and _is_copy(folder, source, target):
            return True  # a copy or a restore made two files of one; the staged one goes
        if there is None or not os.path.samestat(there, wanted):
            raise CorruptTable(
                "another file has the name of a published data file",
                where=str(folder.root / target),
                why=f"the published one is {folder.root / source}",
                fix="Move the other file out of the table, and run the round again.",
            ) from error
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        raise CommitError(
            "a published file can't be moved into place",
            where=str(folder.root / target),
            why="its folder is on another file system than the table",
            fix="Keep a table's folders on one file system. Nothing is lost: the next round moves the file.",
        ) from error
    return True


def _is_copy(folder: LocalFolder, source: str, target: str) -> bool:
    """Whether two files have the same bytes. If so, ``target`` is durable."""
    with os.fdopen(folder.open(source), "rb") as one, os.fdopen(folder.open(target), "rb") as other:
        if os.fstat(one.fileno()).st_size != os.fstat(other.fileno()).st_size:
            return False
        while chunk := one.read(_CHUNK):
            if chunk != other.read(len(chunk)):
                return False
        os.fsync(other.fileno())
    return True


def _is_settled(location: Path, entry: FileEntry) -> bool:
    if locate(location, entry.path) is None:
        raise CorruptTable(
            f"a published data file with {entry.rows} rows is lost",
            where=str(location / entry.path),
            why="it is neither staged, nor in place, nor superseded: something deleted it",
            fix="Restore it from a backup under this name.",
        )
    return True


def _sync_and_unlink(folder: LocalFolder, homes: Iterable[str], sources: Iterable[str]) -> None:
    for home in homes:
        folder.sync_folder(home)
    for source in sources:
        folder.unlink(source)
