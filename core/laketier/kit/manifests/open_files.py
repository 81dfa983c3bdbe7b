"""What a commit does about files that are open: which go on, and which are finished because their process is gone.

A commit of a pipeline names each file that its process still has open (a `StagedFile` with a `Growth`, also of no
rows). A file of the same pipeline that it does not name is nobody's any more: the process was killed or frozen, lost
its lease, or gave the file up as it did not know what had landed. Such a commit writes what was recorded as another
file, and takes that for the old one, in the same manifest, as it does when it folds (`folding`). The old file stays as
it was, below the table's superseded files: there older snapshots read it, and there a process that wakes up appends to
it, unseen.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from laketier.kit.failpoints import failpoint
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.table import ManifestState, ManifestTable
from laketier.spi.errors import CorruptTable, Refused
from laketier.spi.writer import StagedFile

log = logging.getLogger(__name__)


class OpenFileDamaged(Refused, CorruptTable):
    """An open file that a commit has to finish is not as it was recorded. Nothing was published: it is found out before
    the commit has an effect."""


@dataclass
class Finished:
    """Files that a commit finished for others: ``staged`` ones take the place of ``paths``."""

    staged: list[StagedFile] = field(default_factory=list)
    entries: list[FileEntry] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


def left_open(head: Manifest, pipelines: Collection[str], named: Collection[str] = ()) -> list[FileEntry]:
    """The open files of ``pipelines`` that a commit after ``head`` does not name."""
    return [
        entry
        for entry in head.open_files
        if entry.growth is not None and entry.growth.pipeline in pipelines and entry.path not in named
    ]


def finish(table: ManifestTable, state: ManifestState, entries: Sequence[FileEntry]) -> Finished:
    """Finish ``entries``. One that the storage has no room for now stays open, and is tried again by the next commit:
    it can be read all the same. Raises `OpenFileDamaged` where what was recorded is not there any more."""
    finished = Finished()
    for entry in entries:
        try:
            failpoint("recover.before_copy")
            staged = table.finish_open(state, entry)
            failpoint("recover.after_copy")
        except OSError:
            log.warning("%s: %s stays open for now, as it can't be copied", table.store.root, entry.path, exc_info=True)
            continue
        except CorruptTable as error:
            raise OpenFileDamaged(error.what, where=error.where, why=error.why, fix=error.fix) from error
        if staged.rows != entry.rows:
            raise OpenFileDamaged(
                f"the open file {entry.path!r} holds {staged.rows} rows, and the table knows {entry.rows}",
                where=table.store.root,
                fix="Restore it from a backup.",
            )
        finished.staged.append(staged)
        finished.entries.append(replace(table.entry(state, staged), schema=entry.schema, level=entry.level + 1))
        finished.paths.append(entry.path)
        log.info("%s: finished %s, which another process had left open", table.store.root, entry.path)
    return finished


def still_open(head: Manifest, gone: Collection[str], added: Sequence[FileEntry]) -> tuple[FileEntry, ...]:
    """`Manifest.open` of a commit after ``head`` that takes away ``gone`` and adds ``added``."""
    changed = {*gone, *(entry.path for entry in added)}
    return tuple(entry for entry in head.open_files if entry.path not in changed)
