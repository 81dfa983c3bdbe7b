"""The format of `crooked` with partitions and skipping, for mistakes in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from crooked import CrookedPlugin, CrookedStorage
from feather_lake.plugin import FEATURES, FeatherTable, Source, Writer

from laketier import kit, spi
from laketier.kit import durable
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.kit.manifests.rollup import files_at
from laketier.kit.partition import partition_text, split_by_values
from laketier.kit.scans import check_versions

RICHER = {**FEATURES, spi.Feature.PARTITIONING: spi.FULL, spi.Feature.FILTER_PUSHDOWN: spi.FULL}
RICHER[spi.Feature.CHANGE_FEED] = spi.FULL
_NAME = re.compile(r"([0-9a-f]{32})(?:-[0-9]+)?\.feather")


def attempt_of(path: str) -> str | None:
    match = _NAME.fullmatch(path)
    return match[1] if match else None


class RicherTable(FeatherTable):
    features: ClassVar = RICHER
    layout: ClassVar = replace(FeatherTable.layout, attempt_of=attempt_of)


class RicherWriter(Writer):
    """A file for each partition, and a next one after so many bytes of all. All columns are in it."""

    most: ClassVar[int] = 64 << 20

    def __init__(self, table: spi.TableInfo, attempt: str) -> None:
        super().__init__(table, attempt)
        self._parts: list[pa.RecordBatch] = []
        self._bytes = 0
        self._files: list[spi.StagedFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if not self._table.descriptor.partition_by:
            return super().write(batch)
        self._parts.append(kit.conform(batch, self._table.schema))
        self._bytes += batch.nbytes
        if self._bytes >= self.most:
            self._flush()
        return None

    def complete(self) -> spi.WriteResult:
        if not self._table.descriptor.partition_by:
            return super().complete()
        if self._parts:
            self._flush()
        durable.fsync_directory(self._path.parent)
        return spi.WriteResult.of(self._table, self._attempt, tuple(self._files))

    def _flush(self) -> None:
        rows = pa.Table.from_batches(self._parts)
        self._parts, self._bytes = [], 0
        names = [field.column for field in self._table.descriptor.partition_by]
        for values, part in split_by_values(rows, [rows[name] for name in names]):
            self._files.append(self._file_of(len(self._files), names, values, part))

    def abort(self) -> None:
        super().abort()
        for path in self._path.parent.glob(f"{self._attempt}-*.feather"):
            path.unlink()

    def _file_of(self, number: int, names: Sequence[str], values: tuple[Any, ...], rows: pa.Table) -> spi.StagedFile:
        texts = tuple((name, partition_text(value)) for name, value in zip(names, values, strict=True))
        path = self._path.with_name(f"{self._attempt}-{number}.feather")
        with pa.ipc.new_file(str(path), rows.schema) as file:
            file.write_table(rows)
        durable.fsync_file(path)
        return spi.StagedFile(path.name, rows.num_rows, path.stat().st_size, texts)


@dataclass(frozen=True)
class FedFile:
    """A file, and for a change feed the kind of its rows."""

    path: str
    kind: str = ""


class RicherSource(Source):
    """Skips files by the equality of one column with a text. The reader filters again."""

    split_payload: ClassVar = FedFile
    table: RicherTable

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        return replace(super().split(index, entry, snapshot, wanted), payload=FedFile(entry.path))

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        kind = split.payload.kind
        if not kind:
            yield from super().read(split, schema)
            return
        for batch in super().read(split, pa.schema([field for field in schema if field.name != spi.CHANGE_TYPE])):
            typed = {spi.CHANGE_TYPE: pa.array([kind] * len(batch), pa.string())}
            columns = [typed[name] if name in typed else batch.column(name) for name in schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=schema) if len(schema) else batch

    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        return [entry for entry in snapshot.files() if all(self.may(entry, leaf) for leaf in filters)], filters

    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf):
            return True
        by_partition = leaf.column in dict(entry.partition) and leaf.op is spi.Op.EQ and isinstance(leaf.value, str)
        return not by_partition or dict(entry.partition)[leaf.column] == leaf.value

    def column(self, entry: FileEntry, name: str) -> pa.ChunkedArray:
        """As if its statistics had been kept."""
        with pa.ipc.open_file(str(Path(self.table.location) / entry.path)) as file:
            rows = file.read_all()
            return rows[name] if name in rows.column_names else pa.chunked_array([], pa.null())


class BoundedSource(RicherSource):
    """Skips files by the least and the greatest of a column's integers, too."""

    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Leaf(column, spi.Op.EQ, int() as value) if found := self.numbers(entry, column):
                return min(found) <= value <= max(found)
            case spi.Leaf(column, spi.Op.GT, int() as value) if found := self.numbers(entry, column):
                return max(found) > value
        return super().may(entry, leaf)

    def numbers(self, entry: FileEntry, name: str) -> list[int]:
        return [value for value in self.column(entry, name).to_pylist() if type(value) is int]


@dataclass(frozen=True)
class RicherFeed(spi.LakeFeed):
    """All rows of the files that each manifest removed, and then all rows of those that it added."""

    source: Source

    def plan(self, start: int, end: int) -> spi.ScanPlan:
        manifests = self.source.table.manifests()
        head, settled = manifests.current()
        check_versions(start, end, spi.VersionBounds(earliest=0, latest=head.number + 1), where="the feed")
        snapshot = ManifestSnapshot(manifests, head, head, settled)
        splits = []
        for number in range(start, end):
            for kind, entry in self.changed(snapshot, number):
                split = self.source.split(len(splits), entry, snapshot, snapshot.schema)
                splits.append(replace(split, files=(), payload=FedFile(entry.path, kind)))
        schema = snapshot.schema.append(pa.field(spi.CHANGE_TYPE, pa.string()))
        return spi.ScanPlan(snapshot_id=end - 1, schema=schema, splits=tuple(splits))

    def changed(self, snapshot: ManifestSnapshot, number: int) -> list[tuple[str, FileEntry]]:
        before = files_at(snapshot.manifests, number - 1) if number else []
        after = files_at(snapshot.manifests, number)
        went = [("-D", entry) for entry in before if entry not in after]
        return went + [("+I", entry) for entry in after if entry not in before]


@dataclass(frozen=True)
class RicherStorage(CrookedStorage):
    told: type[RicherFeed] = RicherFeed

    def feed(self, table: spi.TableInfo) -> spi.LakeFeed:
        return self.told(self.source(table))


class RicherPlugin(CrookedPlugin):
    told: type[RicherFeed] = RicherFeed

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return RicherStorage(Path(config.warehouse), self._parts, self.told)


def richer(identifier: str, told: type[RicherFeed] = RicherFeed, **parts: Any) -> CrookedPlugin:
    """A plugin with partitions, one of its parts replaced."""
    found = {"features": RICHER, "table": RicherTable, "writer": RicherWriter, "source": RicherSource, **parts}
    plugin = RicherPlugin(identifier, **found)
    plugin.told = told
    return plugin
