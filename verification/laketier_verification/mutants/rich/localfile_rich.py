"""The local file format with what a format of manifests may ask of the kit, at once and by default: tables that were
made of files which lie there, files of another format, small files that nearly each commit folds, files that stay open
from one epoch to the next on a disk, rollups every two commits, and documents of any size kept. Some tests of the suite
expect what such a table does not do, such as no file of an epoch without rows: the control leaves these out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

from laketier.kit.access import access
from laketier.kit.manifests import ManifestCatalog, kept
from laketier.kit.manifests.manifest import ADOPTED
from laketier.kit.warehouse import local_warehouse
from laketier.registry import hookimpl
from laketier.spi import (
    Feature,
    IncompatibleTable,
    LakeStorage,
    LakeStorageConfig,
    LakeStoragePlugin,
    LakeWriter,
    OpenFilesSlot,
    Support,
    TableDescriptor,
    TableInfo,
    TableNotFound,
    TablePath,
    WriteResult,
    WriterInitContext,
    option,
    unsupported,
)
from laketier_localfile.catalog import LocalFileCatalog
from laketier_localfile.features import FEATURES as ALL
from laketier_localfile.options import FileFormatName, LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.storage import LocalFileStorage, LocalFileTieringFactory

FEATURES: Mapping[Feature, Support] = {**ALL, Feature.PLAIN_PARQUET: unsupported("its files have another format")}
kept.LARGE = 0
_SLOTS: dict[tuple[str, int], OpenFilesSlot] = {}
_MOST = 8


@dataclass(frozen=True)
class RichOptions(LocalFileOptions):
    """The same with other defaults."""

    file_format: FileFormatName | None = option(FileFormatName.JSON, "As of the format.")
    fold_files: int = option(2, "As of the format.", least=0)
    open_files: bool = option(True, "As of the format.")
    manifests_per_rollup: int = option(2, "As of the format.", least=2)


class _Adopting(ManifestCatalog):
    """A new table is made of the files in its folder, of which there are none."""

    def create_table(self, path: TablePath, descriptor: TableDescriptor) -> TableInfo:
        try:
            self.load_table(path)
        except TableNotFound:
            store = self.store(path)
            with access("creating the table", where=store.root):
                store.refuse_others(self.table_type.layout.own_folders)
            with suppress(IncompatibleTable):  # of another process, which is looked at below
                self.create_of(path, descriptor, (), origin=ADOPTED, last_look=lambda: None)
        return super().create_table(path, descriptor)


@dataclass(frozen=True)
class RichCatalog(LocalFileCatalog, _Adopting):
    """What `LocalFileCatalog` asks of the kit, `_Adopting` is asked first."""


@dataclass(frozen=True)
class RichFactory(LocalFileTieringFactory):
    """Each task finds what the one of its number left open in this process, as in one that lives over epochs."""

    def create_writer(self, context: WriterInitContext) -> LakeWriter[WriteResult]:
        slot = context.open_files or _slot(self.table.location, context.split_index)
        return super().create_writer(replace(context, open_files=slot))


class RichStorage(LocalFileStorage):
    """Its files stay open where the table's rounds append."""

    def catalog(self) -> LocalFileCatalog:
        made = super().catalog()
        return RichCatalog(made.table_type, made.warehouse, made.manifests_per_rollup, made.options)

    def tiering_factory(self, table: TableInfo) -> LocalFileTieringFactory:
        if not table.descriptor.primary_key:
            made = super().tiering_factory(table)
            return RichFactory(made.table, made.options) if self._options.open_files else made
        options, self._options = self._options, replace(self._options, open_files=False)
        try:
            return super().tiering_factory(table)
        finally:
            self._options = options


class RichPlugin(LocalFilePlugin):
    """The format under another name."""

    identifier: ClassVar[str] = "localfile-rich"
    features: ClassVar[Mapping[Feature, Support]] = FEATURES
    options_type: ClassVar[type] = RichOptions

    def create_storage(self, config: LakeStorageConfig) -> LakeStorage:
        options = config.options if isinstance(config.options, RichOptions) else RichOptions()
        if local_warehouse(config.warehouse) is None:  # nothing can be appended to in a store
            options = replace(options, open_files=False)
        return RichStorage(replace(config, options=options))


def _slot(location: str, index: int) -> OpenFilesSlot:
    slot = _SLOTS.setdefault((location, index), OpenFilesSlot())
    while len(_SLOTS) > _MOST:
        _SLOTS.pop(next(iter(_SLOTS))).close()
    return slot


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    return RichPlugin()
