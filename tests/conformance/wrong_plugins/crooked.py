"""How the wrong plugins are made: the small correct format of tests/third_party/feather with one part replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from feather_lake.plugin import (
    FEATURES,
    Catalog,
    Committer,
    Factory,
    FeatherPlugin,
    Manifest,
    Source,
    Storage,
    Writer,
)

from laketier import kit, spi
from laketier.kit import staged


@dataclass(frozen=True)
class Parts:
    writer: type[Writer] = Writer
    committer: type[Committer] = Committer
    catalog: type[Catalog] = Catalog
    source: type[Source] = Source
    factory: type[CrookedFactory] | None = None
    maintenance: type[Sweeper] | None = None


@dataclass(frozen=True)
class Sweeper(spi.LakeMaintenance):
    """Feather has no orphan collection; this one is right, and what is wrong in some is made of it."""

    home: str

    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        head = Committer(self.home, spi.CommitterInitContext("orphans")).open()
        named = {file for n in range(head.number + 1) for file, _, _ in Manifest.read(self.home, n).files}
        found = [file for file in self.files() if file.path.endswith(".feather") and file.path not in named]
        return [file for file in found if file.modified_at < modified_before]

    def remove_orphans(self, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        return staged.remove_files(kit.TableFolder.at(self.home), orphans)

    def files(self) -> list[spi.OrphanFile]:
        found = kit.TableFolder.at(self.home).files()
        return [spi.OrphanFile(file.path, file.bytes, file.modified_at) for file in found]


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

    def maintenance(self, table: spi.TableInfo) -> spi.LakeMaintenance:
        return super().maintenance(table) if self.parts.maintenance is None else self.parts.maintenance(table.location)


COLLECTS = {**FEATURES, spi.Feature.ORPHAN_COLLECTION: spi.FULL}
"""The features of a plugin that is given a ``maintenance``."""


class CrookedPlugin(FeatherPlugin):
    def __init__(
        self, identifier: str, features: Mapping[spi.Feature, spi.Support] = FEATURES, **parts: object
    ) -> None:
        self.identifier = identifier  # type: ignore[misc]
        self.features = features  # type: ignore[misc, assignment]
        self._parts = Parts(**parts)  # type: ignore[arg-type]

    def create_storage(self, config: spi.LakeStorageConfig) -> Storage:
        return CrookedStorage(config.warehouse, self._parts)
