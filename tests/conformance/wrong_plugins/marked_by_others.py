"""The format of `richer` with another tool for it, for mistakes in tables of others. The tool puts the columns of a
file in another order, and deletes a row by naming its place beside the file, which no writer of ours ever does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from crooked import CrookedPlugin
from richer import RICHER, RicherSource, RicherTable, RicherWriter, richer

from laketier import kit, spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot, files_at
from laketier_conformance.foreign_tables import ForeignTable
from laketier_conformance.harness import Warehouse

Made = Callable[[Warehouse, spi.TablePath], ForeignTable]
DELETED_FROM = "with rows that are marked as deleted"
MARKED = {**RICHER, spi.Feature.CHANGE_FEED: spi.unsupported("it tells no marks")}
SCHEMA = pa.schema([("id", pa.int64()), ("other", pa.int64()), ("name", pa.string())])
ROWS = pa.record_batch([pa.array([1, 2, 3]), pa.array([10, None, 30]), pa.array(["a", None, "c"])], schema=SCHEMA)


@dataclass(frozen=True)
class MarkedFile:
    """A file, and the places of its rows that are deleted."""

    path: str
    kind: str = ""
    deleted: tuple[int, ...] = ()


def marks_of(entry: FileEntry) -> tuple[int, ...]:
    return tuple(map(int, str(entry.details.get("deleted", "")).split()))


def left(rows: pa.Table, deleted: tuple[int, ...]) -> pa.Table:
    return rows.take([place for place in range(rows.num_rows) if place not in deleted])


class MarkedSource(RicherSource):
    split_payload: ClassVar = MarkedFile

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        split = super().split(index, entry, snapshot, wanted)
        deleted = self.deleted(entry)
        rows = None if deleted else split.rows
        return replace(split, rows=rows, payload=MarkedFile(entry.path, deleted=deleted))

    def deleted(self, entry: FileEntry) -> tuple[int, ...]:
        return marks_of(entry)

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if not split.payload.deleted:
            yield from super().read(split, schema)
            return
        for batch in super().read(split, schema):  # of a file that has one
            yield batch.take([place for place in range(batch.num_rows) if place not in split.payload.deleted])


class TurnedWriter(RicherWriter):
    """The other tool's."""

    def new_file(self, path: Path, schema: pa.Schema) -> kit.OpenFile:
        return TurnedFile(pa.ipc.new_file(str(path), pa.schema(list(schema)[::-1])))


@dataclass
class TurnedFile:
    file: Any

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self.file.write_batch(batch.select(batch.schema.names[::-1]))

    def close(self) -> None:
        self.file.close()


@dataclass(frozen=True)
class Tool:
    """It has nothing of the plugin under test but the form of its documents."""

    storage: spi.LakeStorage
    path: spi.TablePath

    @property
    def info(self) -> spi.TableInfo:
        return self.storage.catalog().load_table(self.path)

    def rows(self, version: int | None = None) -> pa.Table:
        own = RicherTable(Path(self.info.location))
        manifests = own.manifests()
        head, _ = manifests.head()
        number = head.number if version is None else version
        schema = ManifestSnapshot(manifests, head, manifests.read(number), settled=True).schema
        found = [schema.empty_table()]
        for entry in files_at(manifests, number):
            with pa.ipc.open_file(str(Path(self.info.location) / entry.path)) as file:
                batches = file.read_all().combine_chunks().to_batches()
            fitted = [kit.conform(b.select([n for n in schema.names if n in b.schema.names]), schema) for b in batches]
            found.append(left(pa.Table.from_batches(fitted, schema), marks_of(entry)))
        return pa.concat_tables(found)

    def snapshots(self) -> list[int]:
        head, _ = RicherTable(Path(self.info.location)).manifests().head()
        return list(range(1, head.number + 1))

    def append(self) -> None:
        self._publish(self._staged(ROWS))

    def delete(self) -> None:
        """The first row of the first file, which is written anew as it was."""
        own = RicherTable(Path(self.info.location))
        manifests = own.manifests()
        head, _ = manifests.head()
        first = next(each for each in files_at(manifests, head.number) if not each.details)
        with pa.ipc.open_file(str(Path(self.info.location) / first.path)) as file:
            rows = file.read_all().combine_chunks()
        (batch,) = rows.to_batches()
        staged = self._staged(batch)
        marked = replace(staged.files[0], payload={"deleted": "0"})
        self._publish(replace(staged, files=(marked,), replaced=(first.path,)), spi.WriteMode.UPSERT)

    def _staged(self, rows: pa.RecordBatch) -> spi.WriteResult:
        writer = TurnedWriter(self.info, spi.new_attempt_id())
        writer.write(rows)
        return writer.complete()

    def _publish(self, result: spi.WriteResult, mode: spi.WriteMode = spi.WriteMode.APPEND) -> None:
        own = RicherTable(Path(self.info.location))
        committer = kit.ManifestCommitter(own, spi.CommitterInitContext(spi.new_attempt_id(), mode=mode))
        committer.publish(committer.open(), [result], None)


def _written(warehouse: Warehouse, path: spi.TablePath) -> Tool:
    tool = Tool(richer("tool").create_storage(spi.LakeStorageConfig(warehouse.location)), path)
    tool.storage.catalog().create_table(path, spi.TableDescriptor(SCHEMA))
    tool.append()
    tool.append()
    return tool


def _turned(warehouse: Warehouse, path: spi.TablePath) -> ForeignTable:
    tool = _written(warehouse, path)
    return ForeignTable(rows=tool.rows, appends=tool.append, snapshots=tool.snapshots)


def deleted_from(*refuses: str) -> Made:
    """Of which the plugin refuses this."""

    def made(warehouse: Warehouse, path: spi.TablePath) -> ForeignTable:
        tool = _written(warehouse, path)
        tool.delete()
        return ForeignTable(
            rows=tool.rows, appends=tool.append, changes=tool.delete, snapshots=tool.snapshots, refuses=refuses
        )

    return made


class ForeignHarness:
    foreign_tables: ClassVar[Mapping[str, Made]] = {
        "whose columns lie in another order": _turned,
        DELETED_FROM: deleted_from(),
    }


def marked_by_others(identifier: str, **parts: Any) -> CrookedPlugin:
    """A plugin, one of its parts replaced."""
    return richer(identifier, **{"features": MARKED, "source": MarkedSource, **parts})
