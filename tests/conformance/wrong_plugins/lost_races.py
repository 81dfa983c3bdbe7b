"""Tables that take an error of a link for a race that was lost."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedLog
from feather_lake.plugin import FeatherTable

from laketier.kit import durable
from laketier.kit.manifests import ManifestLog


def lost_by(error: type[OSError]) -> type[FeatherTable]:
    """Those of a format that takes this one for it."""

    class MistakenLog(CrookedLog):
        def publish(self, path: Path, data: bytes) -> None:
            try:
                durable.create_exclusively(path, data)
            except error as found:
                raise FileExistsError(f"another one has {path}") from found

    class MistakenTable(FeatherTable):
        def manifests(self) -> ManifestLog:
            return MistakenLog.open(self.location, self.layout)

    return MistakenTable
