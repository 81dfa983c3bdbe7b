"""The orphans of a table: staged files that nobody published, and temporary files of killed writers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from laketier.kit.local_folder import FoundFile
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.table import ManifestTable
from laketier.kit.staged import remove_files
from laketier.spi.maintenance import LakeMaintenance, OrphanFile

_TEMPORARY = ".tmp"


@dataclass(frozen=True)
class ManifestMaintenance(LakeMaintenance):
    """For `LakeStorage.maintenance` of a format of manifests. Driver. To list changes nothing: what a crashed commit
    left is finished by the next round. Superseded files stay, as every snapshot can be read."""

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
