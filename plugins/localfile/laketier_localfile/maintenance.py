"""Orphans of a table: what attempts staged and nobody published, and what a killed writer was about to link."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from laketier.spi import LakeMaintenance, OrphanFile
from laketier_localfile.committer import open_finished
from laketier_localfile.layout import IN_PROGRESS, MANIFESTS, TABLE_FILE, staged_path

log = logging.getLogger(__name__)

_TEMPORARY = ".tmp"


class LocalFileMaintenance(LakeMaintenance):
    """Driver only. Needs write access, as it first finishes what a crashed commit left."""

    def __init__(self, location: Path) -> None:
        self._location = location

    def orphans(self, modified_before: int) -> Sequence[OrphanFile]:
        state = open_finished(self._location)
        # A commit is finished before the next one may follow it, so only the newest can still need a staged file. All
        # others there are of nobody, or second names of files that are in place.
        published = {staged_path(entry.path) for entry in state.head.added}
        staged = (file for file in self._files(IN_PROGRESS, "data") if file.path not in published)
        # Beside the table's own folder of manifests there are those of creations that were killed, or lost a race.
        own = state.manifests.folder.relative_to(self._location).as_posix()
        others = (
            file
            for file in self._files(MANIFESTS, "manifest")
            if file.path.endswith(_TEMPORARY) or not file.path.startswith((f"{own}/", TABLE_FILE))
        )
        return [file for each in (staged, others) for file in each if file.modified_at < modified_before]

    def remove_orphans(self, orphans: Sequence[OrphanFile]) -> Sequence[OrphanFile]:
        gone = []
        for file in orphans:
            try:
                (self._location / file.path).unlink(missing_ok=True)
            except OSError:
                log.warning("%s was not deleted", file.path, exc_info=True)
            else:
                gone.append(file)
        return gone

    def _files(self, folder: str, kind: str) -> Iterator[OrphanFile]:
        for parent, _, names in os.walk(self._location / folder):
            for name in names:
                path = Path(parent, name)
                try:
                    status = path.stat()
                except FileNotFoundError:
                    continue  # moved into place meanwhile
                relative = path.relative_to(self._location).as_posix()
                yield OrphanFile(relative, status.st_size, status.st_mtime_ns // 1_000_000, kind)
