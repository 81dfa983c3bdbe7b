"""Local files with a maintenance of another class, for mistakes in it."""

from __future__ import annotations

from typing import Any

from laketier import kit, spi
from laketier_localfile.folding import FoldingTable
from laketier_localfile.place import place_of
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.storage import LocalFileTieringFactory


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


def tiering(named: str, factory: type[LocalFileTieringFactory]) -> spi.LakeStoragePlugin:
    """The plugin whose writers and committers another factory makes."""

    class Made(LocalFilePlugin):
        identifier = named

        def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
            storage: Any = super().create_storage(config)
            made = storage.tiering_factory

            def other(table: spi.TableInfo) -> LocalFileTieringFactory:
                right = made(table)
                return factory(right.table, right.options)

            object.__setattr__(storage, "tiering_factory", other)
            return storage  # type: ignore[no-any-return]

    return Made()


def folding(named: str, table: type[FoldingTable]) -> spi.LakeStoragePlugin:
    """The plugin whose commits are those of another table. Made in this process: factories of it are not pickled."""

    class Factory(LocalFileTieringFactory):
        def create_committer(self, context: spi.CommitterInitContext) -> spi.LakeCommitter[spi.WriteResult]:
            place = place_of(self.table.location, self.options.storage)
            return kit.ManifestCommitter(table(place, self.options), context)

    return tiering(named, Factory)
