"""How the wrong plugins are made: the small correct format of tests/third_party/feather with one part replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from feather_lake.plugin import FEATURES, Catalog, Committer, Factory, FeatherPlugin, Source, Storage, Writer

from laketier import spi


@dataclass(frozen=True)
class Parts:
    writer: type[Writer] = Writer
    committer: type[Committer] = Committer
    catalog: type[Catalog] = Catalog
    source: type[Source] = Source
    factory: type[CrookedFactory] | None = None


@dataclass(frozen=True)
class CrookedFactory(Factory):
    parts: Parts = Parts()

    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        return self.parts.writer(self.table, context.attempt)

    def create_committer(self, context: spi.CommitterInitContext) -> Committer:
        return self.parts.committer(self.table.location, context)


@dataclass(frozen=True)
class CrookedStorage(Storage):
    parts: Parts = Parts()

    def catalog(self) -> Catalog:
        return self.parts.catalog(self.warehouse)

    def tiering_factory(self, table: spi.TableInfo) -> Factory:
        return (self.parts.factory or CrookedFactory)(table, self.parts)

    def source(self, table: spi.TableInfo) -> Source:
        return self.parts.source(table.location)


class CrookedPlugin(FeatherPlugin):
    def __init__(
        self, identifier: str, features: Mapping[spi.Feature, spi.Support] = FEATURES, **parts: object
    ) -> None:
        self.identifier = identifier  # type: ignore[misc]
        self.features = features  # type: ignore[misc, assignment]
        self._parts = Parts(**parts)  # type: ignore[arg-type]

    def create_storage(self, config: spi.LakeStorageConfig) -> Storage:
        return CrookedStorage(config.warehouse, self._parts)
