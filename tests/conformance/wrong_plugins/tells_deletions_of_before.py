"""Of a file from which others deleted rows a second time, the feed tells all that are gone: the first ones, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from leaving import KeepingHarness, deletions
from richer import RicherFeed, RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.kit.manifests.rollup import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_feed.py::test_each_range_is_the_sum_of_its_versions"
SAYS = "changes by delete 2 by others of rows of one file"


class Harness(KeepingHarness):
    """Each deletion is a commit."""

    def delete_rows(self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int]) -> None:
        super().delete_rows(storage, table, ids)
        factory = storage.tiering_factory(table)
        committer = factory.create_committer(spi.CommitterInitContext(spi.new_attempt_id()))
        committer.publish(committer.open(), [], None)


@dataclass(frozen=True)
class Told:
    """A file: without these rows, or only these."""

    path: str
    kind: str = ""
    without: tuple[int, ...] = ()
    only: tuple[int, ...] | None = None


class TellingSource(RicherSource):
    split_payload: ClassVar = Told

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        gone = tuple(map(int, deletions(self.table)))
        return replace(super().split(index, entry, snapshot, wanted), rows=None, payload=Told(entry.path, "", gone))

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        told: Told = split.payload
        wider = schema if "id" in schema.names else schema.append(pa.field("id", pa.int64()))
        for batch in super().read(split, wider):
            kept = pc.invert(pc.is_in(batch["id"], pa.array(told.without, pa.int64())))
            if told.only is not None:
                kept = pc.is_in(batch["id"], pa.array(told.only, pa.int64()))
            yield batch.filter(kept).select(schema.names)


class TellingFeed(RicherFeed):
    def plan(self, start: int, end: int) -> spi.ScanPlan:
        plan, splits = super().plan(start, end), []
        manifests = self.source.table.manifests()
        for number in range(start, end):
            splits += [
                replace(split, payload=Told(split.payload.path, split.payload.kind))
                for split in super().plan(number, number + 1).splits
            ]
            gone = deletions(self.source.table)
            if number - 1 in gone.values():
                ids = tuple(int(each) for each, at in gone.items() if at < number)
                splits += [
                    spi.LakeSplit(index=0, payload=Told(entry.path, "-D", only=ids))
                    for entry in files_at(manifests, number)
                ]
        return replace(plan, splits=tuple(replace(each, index=at) for at, each in enumerate(splits)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("tells-deletions-of-before", told=TellingFeed, source=TellingSource)
