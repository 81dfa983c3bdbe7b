"""What processes left: the orphans of a table (staged files that nobody published, and temporary files of killed
writers), and the files of pipelines that are still open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from laketier.kit.local_folder import FoundFile
from laketier.kit.manifests.committer import ManifestCommitter
from laketier.kit.manifests.expiry import expire, list_expired
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.table import ManifestTable
from laketier.kit.staged import remove_files
from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi.context import CommitterInitContext
from laketier.spi.errors import Conflict
from laketier.spi.maintenance import Expiry, LakeMaintenance, OpenDataFile, OrphanFile
from laketier.spi.writer import attempt_began_at, new_attempt_id

_TEMPORARY = ".tmp"
_TRIES = 20
"""Each is a copy of the files, and a stream of small epochs wins some of these races."""


@dataclass(frozen=True)
class ManifestMaintenance(LakeMaintenance):
    """For `LakeStorage.maintenance` of a format of manifests. Driver. To list changes nothing: what a crashed commit
    left is finished by the next round. Superseded files stay until their snapshots expire."""

    table: ManifestTable

    def orphans(self, modified_before: int) -> Sequence[OrphanFile]:
        manifests = self.table.manifests()
        staged = [file for file in self._staged() if file.modified_at < modified_before]
        # Listed before the head is read: what is committed in between is then no orphan.
        head, _ = manifests.head()
        # Most times there is none, and then there is nothing to compare it with.
        published = self.table.published(manifests, head) if staged else set()
        left = [file for file in staged if file.path not in published]
        return left + [file for file in self._temporary(manifests) if file.modified_at < modified_before]

    def remove_orphans(self, orphans: Sequence[OrphanFile]) -> Sequence[OrphanFile]:
        return remove_files(self.table.store, orphans)

    def expire(self, *, retention: int, keep: int, delete: bool) -> Expiry:
        with naming_storage_errors("old snapshots were looked at"):
            return (expire if delete else list_expired)(self.table, retention, keep)

    def open_files(self) -> Sequence[OpenDataFile]:
        head, _ = self.table.manifests().head()
        return sorted(self._open(head, entry) for entry in head.open_files)

    def finish_open_files(self, pipelines: Sequence[str]) -> Sequence[OpenDataFile]:
        chosen = frozenset(pipelines)
        for tries_left in reversed(range(_TRIES)):
            committer = ManifestCommitter(self.table, CommitterInitContext(new_attempt_id()), finishes=chosen)
            state = committer.open()
            try:
                committer.finish_left_open(state)
            except Conflict:
                if not tries_left:
                    raise
            else:
                break
        return [file for file in self.open_files() if file.pipeline in chosen]

    def _open(self, head: Manifest, entry: FileEntry) -> OpenDataFile:
        pipeline = "" if entry.growth is None else entry.growth.pipeline
        attempt = self.table.layout.attempt_of(self.table.layout.staged_path(entry.path))
        watermark = head.watermark(pipeline)
        return OpenDataFile(
            pipeline=pipeline,
            path=entry.path,
            rows=entry.rows,
            bytes=entry.bytes,
            began_at=None if attempt is None else attempt_began_at(attempt),
            epoch=None if watermark is None else watermark.token.epoch,
            committed_at=None if watermark is None else watermark.committed_at,
        )

    def _staged(self) -> list[OrphanFile]:
        """What lies where files are staged. All in a folder of its own is the format's; elsewhere its names tell."""
        layout = self.table.layout
        found = [self._named(file, "data") for file in self.table.store.files(layout.staging)]
        return [file for file in found if layout.staging or file.attempt is not None]

    def _temporary(self, manifests: ManifestLog) -> list[OrphanFile]:
        """Beside the table's own folder of manifests there are those of creations that were killed, or lost a race."""
        layout, own = self.table.layout, manifests.home
        return [
            self._named(file, "manifest")
            for file in self.table.store.files(layout.folder)
            if file.path.endswith(_TEMPORARY) or not file.path.startswith((f"{own}/", layout.table_file))
        ]

    def _named(self, file: FoundFile, kind: str) -> OrphanFile:
        return OrphanFile(file.path, file.bytes, file.modified_at, kind, self.table.layout.attempt_of(file.path))
