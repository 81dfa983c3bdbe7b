"""Copying published files to where plain readers look for them, and superseded ones away.

The rules are those of `laketier_localfile.settle`: the manifest comes first, and what follows is rolled forward by
whoever opens the table next. A store has no second names, so a move is a copy within the store and then a deletion, and
the file is always in at least one place. A process that froze can bring nothing back: what it would copy is gone by
then, as no manifest is published on top of an unfinished one, and a name is never used again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from laketier.kit.failpoints import failpoint
from laketier.kit.manifests import FileEntry, Manifest, ManifestLog, files_before
from laketier.spi import CorruptTable
from laketier_localfile.layout import staged_path, superseded_path
from laketier_localfile.s3.store import S3Store

log = logging.getLogger(__name__)


def settle(manifests: ManifestLog, store: S3Store, head: Manifest) -> None:
    """Roll the newest commit forward: its files into place, and what it superseded away. Idempotent, and safe beside
    another process that does the same. Raises `CorruptTable` when a file of the commit is nowhere, and `StorageError`;
    the commit has landed all the same."""
    if head.resets:
        _retire(store, [entry.path for entry in files_before(manifests, head)])
    elif head.removed:
        _retire(store, head.removed)
    _promote(store, head.added)


def places(path: str) -> tuple[str, ...]:
    """Where the data file ``path`` may be, in the order in which it is most likely, and then moves."""
    return path, staged_path(path), path, superseded_path(path)


def _promote(store: S3Store, entries: Sequence[FileEntry]) -> None:
    store.at_once(lambda entry: _promoted(store, entry), entries)
    failpoint("publish.after_renames_before_sync")
    store.delete_all([staged_path(entry.path) for entry in entries])


def _promoted(store: S3Store, entry: FileEntry) -> None:
    if not store.copy(staged_path(entry.path), entry.path):
        # Somebody else did it, and may have superseded the file since.
        found = store.sizes([entry.path, superseded_path(entry.path)])
        if all(size is None for size in found.values()):
            raise CorruptTable(
                f"a published data file with {entry.rows} rows is lost",
                where=store.where(entry.path),
                why="it is neither staged, nor in place, nor superseded: something deleted it",
                fix="Restore it from a backup under this name.",
            )
    failpoint("publish.mid_renames")


def _retire(store: S3Store, paths: Sequence[str]) -> None:
    store.at_once(lambda path: _retired(store, path), paths)
    store.delete_all(paths)


def _retired(store: S3Store, path: str) -> None:
    target = superseded_path(path)
    if not store.copy(path, target) and store.sizes([target])[target] is None:
        log.warning("%s was to be superseded and is missing; time travel to it is not possible", store.where(path))
    failpoint("publish.mid_retire")
