"""Local files with another maintenance, source, factory, table or partitioning, for mistakes in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from laketier import kit, spi
from laketier_localfile import partitioning
from laketier_localfile.folding import FoldingTable
from laketier_localfile.place import place_of
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.source import LocalFileSource
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


def reading(named: str, source: type[LocalFileSource]) -> spi.LakeStoragePlugin:
    """The plugin whose tables another source plans and reads."""

    class Read(LocalFilePlugin):
        identifier = named

        def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
            storage: Any = super().create_storage(config)
            made = storage.source
            object.__setattr__(storage, "source", lambda table: source(made(table).table))
            return storage  # type: ignore[no-any-return]

    return Read()


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


def partitioning_by(named: str, function: str, wrong: Callable[..., pa.Array]) -> spi.LakeStoragePlugin:
    """The plugin whose writers part their rows with another function of `laketier_localfile.partitioning`."""

    class PartingWriter(spi.LakeWriter[spi.WriteResult]):
        def __init__(self, own: spi.LakeWriter[spi.WriteResult]) -> None:
            self._own = own

        def write(self, batch: pa.RecordBatch) -> None:
            self._own.write(batch)

        def complete(self) -> Any:
            with patch.object(partitioning, function, wrong):
                return self._own.complete()

        def abort(self) -> None:
            self._own.abort()

    class Factory(LocalFileTieringFactory):
        def create_writer(self, context: spi.WriterInitContext) -> spi.LakeWriter[spi.WriteResult]:
            return PartingWriter(super().create_writer(context))

    return tiering(named, Factory)


def folding(named: str, table: type[FoldingTable]) -> spi.LakeStoragePlugin:
    """The plugin whose commits are those of another table. Made in this process: factories of it are not pickled."""

    class Factory(LocalFileTieringFactory):
        def create_committer(self, context: spi.CommitterInitContext) -> spi.LakeCommitter[spi.WriteResult]:
            place = place_of(self.table.location, self.options.storage)
            return kit.ManifestCommitter(table(place, self.options), context)

    return tiering(named, Factory)
