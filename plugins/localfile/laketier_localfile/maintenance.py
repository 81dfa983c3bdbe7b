"""Orphans of a table: what attempts staged and nobody published, and what a killed writer was about to link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from laketier.kit import LocalFolder
from laketier.kit.staged import remove_files
from laketier.spi import LakeMaintenance, OrphanFile
from laketier_localfile.committer import table_folder
from laketier_localfile.layout import IN_PROGRESS, MANIFESTS, TABLE_FILE, attempt_of, staged_path
from laketier_localfile.log import ManifestLog

_TEMPORARY = ".tmp"


class LocalFileMaintenance(LakeMaintenance):
    """Driver only. To list changes nothing: what a crashed commit left is finished by the next round."""

    def __init__(self, location: Path) -> None:
        self._location = location

    def orphans(self, modified_before: int) -> Sequence[OrphanFile]:
        manifests = ManifestLog.open(self._location)
        head, _ = manifests.head()
        # A commit is finished before the next one may follow it, so only the newest can still need a staged file. All
        # others there are of nobody, or second names of files that are in place.
        published = {staged_path(entry.path) for entry in head.added}
        staged = (file for file in self._files(IN_PROGRESS, "data") if file.path not in published)
        # Beside the table's own folder of manifests there are those of creations that were killed, or lost a race.
        own = manifests.folder.relative_to(self._location).as_posix()
        others = (
            file
            for file in self._files(MANIFESTS, "manifest")
            if file.path.endswith(_TEMPORARY) or not file.path.startswith((f"{own}/", TABLE_FILE))
        )
        return [file for each in (staged, others) for file in each if file.modified_at < modified_before]

    def remove_orphans(self, orphans: Sequence[OrphanFile]) -> Sequence[OrphanFile]:
        return remove_files(table_folder(self._location), orphans)

    def _files(self, folder: str, kind: str) -> Iterator[OrphanFile]:
        for file in LocalFolder(self._location).files(folder):
            yield OrphanFile(file.path, file.bytes, file.modified_at, kind, attempt_of(file.path))
