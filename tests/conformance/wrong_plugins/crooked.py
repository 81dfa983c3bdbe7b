"""How the wrong plugins are made: the small correct format of tests/third_party/feather with one part replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from feather_lake.plugin import FEATURES, FeatherPlugin, FeatherTable, Source, Writer

from laketier import kit, spi
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest


@dataclass(frozen=True)
class Parts:
    writer: type[Writer] = Writer
    committer: type[kit.ManifestCommitter] = kit.ManifestCommitter
    catalog: type[kit.ManifestCatalog] = kit.ManifestCatalog
    source: type[Source] = Source
    table: type[FeatherTable] = FeatherTable
    changes: type[kit.ManifestChanges] = kit.ManifestChanges
    factory: type[CrookedFactory] | None = None
    maintenance: type[kit.ManifestMaintenance] = kit.ManifestMaintenance
    history: type[kit.ManifestHistory] = kit.ManifestHistory

    def at(self, table: spi.TableInfo) -> FeatherTable:
        return self.table(Path(table.location))


@dataclass(frozen=True)
class CrookedFactory(spi.LakeTieringFactory[spi.WriteResult]):
    table: spi.TableInfo
    parts: Parts = Parts()

    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        return self.parts.writer(self.table, context.attempt)

    def create_committer(self, context: spi.CommitterInitContext) -> kit.ManifestCommitter:
        return self.parts.committer(self.parts.at(self.table), context)


@dataclass(frozen=True)
class CrookedStorage(spi.LakeStorage):
    warehouse: Path
    parts: Parts = Parts()

    def catalog(self) -> kit.ManifestCatalog:
        return self.parts.catalog(self.parts.table, self.warehouse)

    def tiering_factory(self, table: spi.TableInfo) -> CrookedFactory:
        return (self.parts.factory or CrookedFactory)(table, self.parts)

    def source(self, table: spi.TableInfo) -> Source:
        return self.parts.source(self.parts.at(table))

    def state(self, table: spi.TableInfo) -> kit.ManifestState:
        return self.parts.at(table).state(table)

    def history(self, table: spi.TableInfo) -> kit.ManifestHistory:
        return self.parts.history(self.parts.at(table))

    def changes(self, table: spi.TableInfo) -> kit.ManifestChanges:
        return self.parts.changes(self.source(table))

    def maintenance(self, table: spi.TableInfo) -> spi.LakeMaintenance:
        return self.parts.maintenance(self.parts.at(table))


class CrookedLog(ManifestLog):
    """Manifests get their names by `publish`, which raises `FileExistsError` for one that is taken."""

    def publish(self, path: Path, data: bytes) -> None:
        raise NotImplementedError

    def append(self, manifest: Manifest) -> Manifest:
        path, document = self.path(manifest.number), manifest.encode()
        try:
            self.publish(path, document)
        except FileExistsError as error:
            raise spi.Conflict("another writer published it", where=str(path)) from error
        return Manifest.decode(document, path, self.layout)


class CrookedPlugin(FeatherPlugin):
    def __init__(
        self, identifier: str, features: Mapping[spi.Feature, spi.Support] = FEATURES, **parts: object
    ) -> None:
        self.identifier = identifier  # type: ignore[misc]
        self.features = features  # type: ignore[misc, assignment]
        self._parts = Parts(**parts)  # type: ignore[arg-type]

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return CrookedStorage(Path(config.warehouse), self._parts)
