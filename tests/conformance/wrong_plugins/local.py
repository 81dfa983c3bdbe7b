"""Local files with another maintenance, adoption, source, factory, table or assigner, for mistakes in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from laketier import kit, spi
from laketier_localfile import partitioning
from laketier_localfile.adoption import LocalFileAdoption
from laketier_localfile.folding import FoldingTable
from laketier_localfile.place import place_of
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.source import LocalFileSource
from laketier_localfile.storage import LocalFileTieringFactory
from laketier_localfile.writer import LocalFileWriter


def local(named: str, maintenance: type[kit.ManifestMaintenance]) -> spi.LakeStoragePlugin:
    """The plugin."""
    return _with_another(named, "maintenance", lambda right: maintenance(right.table))


def adopting(named: str, adoption: type[LocalFileAdoption]) -> spi.LakeStoragePlugin:
    """The plugin whose tables of files that lie there are made by another object."""

    class Adopting(LocalFilePlugin):
        identifier = named

        def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
            storage: Any = super().create_storage(config)
            object.__setattr__(storage, "adoption", lambda: adoption(storage.catalog()))
            return storage  # type: ignore[no-any-return]

    return Adopting()


def reading(named: str, source: type[LocalFileSource]) -> spi.LakeStoragePlugin:
    """The plugin whose tables another source plans and reads."""
    return _with_another(named, "source", lambda right: source(right.table))


def tiering(named: str, factory: type[LocalFileTieringFactory]) -> spi.LakeStoragePlugin:
    """The plugin whose writers and committers another factory makes."""
    return _with_another(named, "tiering_factory", lambda right: factory(right.table, right.options))


def bucketing(
    named: str,
    assigner: Callable[[spi.TableDescriptor], spi.BucketAssigner],
    writer: type[LocalFileWriter] = LocalFileWriter,
) -> spi.LakeStoragePlugin:
    """The plugin whose writers give rows their buckets in another way."""

    class Factory(LocalFileTieringFactory):
        def create_writer(self, context: spi.WriterInitContext) -> spi.LakeWriter[spi.WriteResult]:
            table = self.table.descriptor
            return writer(self.table, self.options, assigner(table) if table.buckets else None, context)

    return tiering(named, Factory)


def _with_another(named: str, part: str, instead: Callable[[Any], Any]) -> spi.LakeStoragePlugin:
    """The plugin whose storage gives, for a table, something else in the place of the right part."""

    class Other(LocalFilePlugin):
        identifier = named

        def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
            storage: Any = super().create_storage(config)
            right = getattr(storage, part)
            object.__setattr__(storage, part, lambda table: instead(right(table)))
            return storage  # type: ignore[no-any-return]

    return Other()


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
