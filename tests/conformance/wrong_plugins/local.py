"""Local files with a maintenance of another class, for mistakes in it."""

from __future__ import annotations

from typing import Any

from laketier import kit, spi
from laketier_localfile.plugin import LocalFilePlugin


def local(named: str, maintenance: type[kit.ManifestMaintenance]) -> spi.LakeStoragePlugin:
    """The plugin."""

    class Maintained(LocalFilePlugin):
        identifier = named

        def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
            storage: Any = super().create_storage(config)
            made = storage.maintenance
            object.__setattr__(storage, "maintenance", lambda table: maintenance(made(table).table))
            return storage  # type: ignore[no-any-return]

    return Maintained()
