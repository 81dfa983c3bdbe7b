"""Others delete and update rows by their ids, and put files together. A deletion is of the files that were there before
it, and an update is one with an append."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from compacting import merged
from feather_lake.plugin import FeatherTable, Source
from leaving import KeepingHarness, deletions

from laketier import kit, spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot, files_at

NAMED = "compacted.json"


def compacted(table: kit.ManifestTable) -> dict[str, int]:
    """The files that a compaction made, and the commit whose rows they count as."""
    listed = Path(table.location) / NAMED
    found: dict[str, int] = json.loads(listed.read_text(encoding="utf-8")) if listed.exists() else {}
    return found


class CompactingHarness(KeepingHarness):
    """``oldest``: whether what is put together counts as the oldest of it, not as new."""

    oldest = False

    def compact(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        source = storage.source(table)
        assert isinstance(source, SequencedSource)
        own = FeatherTable(Path(table.location))
        state, result = own.open(), merged(storage, table)
        live = [entry.path for entry in files_at(state.manifests, state.head.number)]
        number = min(map(source.came_with, live)) if self.oldest else state.head.number + 1
        context = spi.CommitterInitContext(spi.new_attempt_id(), mode=spi.WriteMode.UPSERT)
        kit.ManifestCommitter(own, context).publish(state, [replace(result, replaced=tuple(live))], None)
        listed = compacted(own) | {file.path: number for file in result.files}
        (Path(table.location) / NAMED).write_text(json.dumps(listed), encoding="utf-8")


class UpdatingByIdsHarness(CompactingHarness):
    def update_rows(
        self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int], column: str, text: str
    ) -> None:
        source, factory = storage.source(table), storage.tiering_factory(table)
        plan = source.plan(spi.ScanRequest())
        batches = [rows for split in plan.splits for rows in source.read(split, plan.schema)]
        rows = pa.Table.from_batches(batches, plan.schema)
        rows = rows.filter(pc.is_in(rows["id"], pa.array(ids, pa.int64())))
        at, field = plan.schema.get_field_index(column), plan.schema.field(column)
        KeepingHarness.delete_rows(self, storage, table, ids)
        writer = factory.create_writer(spi.WriterInitContext(spi.new_attempt_id()))
        for batch in rows.set_column(at, field, pa.array([text] * len(rows), field.type)).to_batches():
            writer.write(batch)
        committer = factory.create_committer(spi.CommitterInitContext(spi.new_attempt_id()))
        committer.publish(committer.open(), [replace(writer.complete(), after=None)], None)


@dataclass(frozen=True)
class Part:
    """A file. ``whole``: with the rows that others deleted since, as it was appended."""

    path: str
    whole: bool = False


class SequencedSource(Source):
    split_payload: ClassVar[type] = Part

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        return replace(super().split(index, entry, snapshot, wanted), rows=None, payload=Part(entry.path))

    def arrived_split(
        self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema
    ) -> spi.LakeSplit:
        return replace(self.split(index, entry, snapshot, wanted), payload=Part(entry.path, whole=True))

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        wider = schema if "id" in schema.names else schema.append(pa.field("id", pa.int64()))
        gone = pa.array([], pa.int64()) if split.payload.whole else self.gone(split.payload.path)
        for batch in super().read(split, wider):
            yield batch.filter(pc.invert(pc.is_in(batch["id"], gone))).select(schema.names)

    def gone(self, path: str) -> pa.Array:
        """The ids that were deleted since the file came."""
        came = self.came_with(path)
        return pa.array([int(each) for each, at in deletions(self.table).items() if at >= came], pa.int64())

    def came_with(self, path: str) -> int:
        named = compacted(self.table)
        if path in named:
            return named[path]
        manifests = self.table.manifests()
        head, _ = manifests.current()
        return next(n for n in range(head.number + 1) if path in {entry.path for entry in files_at(manifests, n)})
