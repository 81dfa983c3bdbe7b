"""What comes after a compaction is read together with the file that it made, as one split. It names that file alone, so
an upsert that merged all of them leaves the others in the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from crooked import CrookedPlugin
from sequenced import CompactingHarness, Part, SequencedSource, compacted

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_lives.py::test_keys_come_again_after_others_deleted_them"
SAYS = "a key is there twice: [(1, 'A'),"


class Harness(CompactingHarness):
    pass


@dataclass(frozen=True)
class Slice:
    paths: tuple[str, ...]

    @property
    def path(self) -> str:
        return self.paths[0]


class SlicedSource(SequencedSource):
    split_payload: ClassVar = Slice

    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        bases = compacted(self.table)
        found: list[spi.LakeSplit] = []
        for split in plan.splits:
            path = split.payload.path
            if found and found[-1].payload.path in bases and path not in bases:
                both = Slice((*found[-1].payload.paths, path))
                found[-1] = replace(found[-1], payload=both, bytes=None)
            else:
                found.append(replace(split, payload=Slice((path,)), index=len(found)))
        return replace(plan, splits=tuple(found))

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for path in split.payload.paths:
            yield from super().read(replace(split, payload=Part(path)), schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("names-the-base-of-a-slice", source=SlicedSource)
