"""A literal is put between quotes in a query whose language takes a backslash for the sign of an escape: it finds the
rows of another text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, Source

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_text_that_queries_spell_otherwise"
SAYS = r"rows were read by the filter v = 'a\\b'"


@dataclass(frozen=True)
class QueriedFile:
    """A file, of whose rows those count whose ``column`` is ``text``."""

    path: str
    column: str = ""
    text: str = ""


class QuotingSource(Source):
    split_payload: ClassVar = QueriedFile

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        return replace(super().split(index, entry, snapshot, wanted), payload=QueriedFile(entry.path))

    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        texts = {field.name for field in plan.schema if pa.types.is_string(field.type)}
        for leaf in request.filters:
            if isinstance(leaf, spi.Leaf) and leaf.op is spi.Op.EQ and leaf.column in texts:
                unescaped = re.sub(r"\\(.)", r"\1", leaf.value)
                splits = [
                    replace(each, rows=None, files=(), payload=QueriedFile(each.payload.path, leaf.column, unescaped))
                    for each in plan.splits
                ]
                remaining = tuple(each for each in plan.remaining if each is not leaf)
                return replace(plan, splits=tuple(splits), remaining=remaining)
        return plan

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        column = split.payload.column
        for batch in super().read(split, schema):
            yield batch.filter(pc.equal(batch[column], split.payload.text)) if column in schema.names else batch


@hookimpl
def laketier_format() -> CrookedPlugin:
    features = {**FEATURES, spi.Feature.FILTER_PUSHDOWN: spi.FULL}
    return CrookedPlugin("spells-backslashes-as-they-are", features, source=QuotingSource)
