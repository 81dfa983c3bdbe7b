"""A reader whose splits carry a filter, for mistakes in it: it takes ``column > number``, and leaves the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, Source

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot


@dataclass(frozen=True)
class SievedFile:
    """A file, of whose rows those count in which ``column`` is greater than ``number``."""

    path: str
    column: str = ""
    number: int = 0


class SievingSource(Source):
    split_payload: ClassVar = SievedFile

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        return replace(super().split(index, entry, snapshot, wanted), payload=SievedFile(entry.path))

    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        taken = next((leaf for leaf in request.filters if takes(leaf)), None)
        if not isinstance(taken, spi.Leaf):
            return plan
        splits = [self.sieved(split, taken, request.limit) for split in plan.splits]
        return replace(plan, splits=tuple(splits), remaining=tuple(f for f in plan.remaining if f is not taken))

    def sieved(self, split: spi.LakeSplit, taken: spi.Leaf, limit: int | None) -> spi.LakeSplit:
        payload = SievedFile(split.payload.path, taken.column, taken.value)
        return replace(split, rows=None, files=(), payload=payload)

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in super().read(split, schema):
            yield self.passing(split, batch)

    def passing(self, split: spi.LakeSplit, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of ``batch`` that count."""
        column = split.payload.column
        if column not in batch.schema.names:
            return batch
        return batch.filter(pc.greater(batch[column], split.payload.number))


class FirstPartSource(SievingSource):
    """Takes the first part of a condition for the whole of it."""

    whole: ClassVar[type[spi.And] | type[spi.Or]]

    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        whole = next((f for f in request.filters if isinstance(f, self.whole) and takes(f.children[0])), None)
        if whole is None:
            return super().plan(request)
        others = tuple(each for each in request.filters if each is not whole)
        return super().plan(replace(request, filters=(whole.children[0], *others)))


def takes(leaf: spi.Predicate) -> bool:
    return isinstance(leaf, spi.Leaf) and leaf.op is spi.Op.GT and type(leaf.value) is int


def sieving(identifier: str, source: type[SievingSource]) -> CrookedPlugin:
    """A plugin with that reader."""
    features = {**FEATURES, spi.Feature.FILTER_PUSHDOWN: spi.FULL, spi.Feature.LIMIT_PUSHDOWN: spi.FULL}
    return CrookedPlugin(identifier, features, source=source)
