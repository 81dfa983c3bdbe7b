"""Feather files in a `laketier.kit.ManifestTable`: the author's part is a table of types, a writer and a reader."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from laketier import kit, spi
from laketier.kit import durable
from laketier.registry import hookimpl

ABILITIES = (
    "overwrite", "upsert", "add-column", "widen-type", "drop-table", "time-travel", "time-travel-by-timestamp",
    "history", "incremental-read", "nested-types", "vectors", "orphan-collection",
)  # fmt: skip
FEATURES = {
    feature: spi.FULL if feature.value in ABILITIES else spi.unsupported("the format is kept small")
    for feature in spi.Feature
}

_NAME = re.compile(r"([0-9a-f]{32})\.feather")


def attempt_of(path: str) -> str | None:
    """The attempt that wrote a file. Files stay where they are staged, so this tells all data files by their names."""
    match = _NAME.fullmatch(path)
    return match[1] if match else None


class FeatherTable(kit.ManifestTable):
    """Arrow's own file format holds all of Arrow's types."""

    layout: ClassVar = kit.ManifestLayout(format="feather", folder="_feather_manifests", attempt_of=attempt_of)
    features: ClassVar = FEATURES

    @classmethod
    def check_types(cls, schema: pa.Schema) -> None:
        pass


class Writer(spi.LakeWriter[spi.WriteResult]):
    """One file for one task attempt, named after it."""

    def __init__(self, table: spi.TableInfo, attempt: str) -> None:
        self._table, self._attempt, self._rows = table, attempt, 0
        self._path = Path(table.location) / f"{attempt}.feather"
        self._file: pa.ipc.RecordBatchFileWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        batch = kit.conform(batch, self._table.schema)
        if len(batch):
            self._file = self._file or pa.ipc.new_file(str(self._path), self._table.schema)
            self._file.write_batch(batch)
            self._rows += len(batch)

    def complete(self) -> spi.WriteResult:
        if self._file is None:
            return spi.WriteResult.of(self._table, self._attempt, ())
        self._file.close()
        durable.fsync_file(self._path)
        durable.fsync_directory(self._path.parent)
        file = spi.StagedFile(self._path.name, self._rows, self._path.stat().st_size)
        return spi.WriteResult.of(self._table, self._attempt, (file,))

    def abort(self) -> None:
        self._path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Factory(spi.LakeTieringFactory[spi.WriteResult]):
    """Holds the table's description, which is all that a writer needs."""

    table: spi.TableInfo

    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        spi.require_mode("feather", FEATURES, context.mode)
        return Writer(self.table, context.attempt)

    def create_committer(self, context: spi.CommitterInitContext) -> kit.ManifestCommitter:
        spi.require_mode("feather", FEATURES, context.mode)
        return kit.ManifestCommitter(FeatherTable(Path(self.table.location)), context)


class Source(kit.ManifestSource):
    """A split is a file. Filters and limits are left to the reader."""

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        path = self.table.location / self.table.layout.data_path(split.payload.path, where="a split")
        try:
            with pa.ipc.open_file(str(path)) as file:
                for batch in map(file.get_batch, range(file.num_record_batches)):
                    yield kit.conform(batch.select([n for n in schema.names if n in batch.schema.names]), schema)
        except (FileNotFoundError, pa.ArrowInvalid) as error:
            raise spi.CorruptTable("a data file can't be read", where=str(path), why=str(error)) from error


@dataclass(frozen=True)
class Storage(spi.LakeStorage):
    """A warehouse is a folder."""

    warehouse: Path

    def catalog(self) -> kit.ManifestCatalog:
        return kit.ManifestCatalog(FeatherTable, self.warehouse)

    def tiering_factory(self, table: spi.TableInfo) -> Factory:
        return Factory(table.with_handle(None))

    def source(self, table: spi.TableInfo) -> Source:
        return Source(FeatherTable(Path(table.location)))

    def state(self, table: spi.TableInfo) -> kit.ManifestState:
        return FeatherTable(Path(table.location)).state(table)

    def history(self, table: spi.TableInfo) -> kit.ManifestHistory:
        return kit.ManifestHistory(FeatherTable(Path(table.location)))

    def changes(self, table: spi.TableInfo) -> kit.ManifestChanges:
        return kit.ManifestChanges(self.source(table))

    def maintenance(self, table: spi.TableInfo) -> spi.LakeMaintenance:
        return kit.ManifestMaintenance(FeatherTable(Path(table.location)))


class FeatherPlugin(spi.LakeStoragePlugin):
    """The format."""

    identifier, spi_version = "feather", 3
    delivery, features = spi.DeliveryLevel.EXACTLY_ONCE, FEATURES

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        if "://" in config.warehouse:
            spi.require("feather", FEATURES, spi.Feature.OBJECT_STORES)
        return Storage(Path(config.warehouse).absolute())


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return FeatherPlugin()
