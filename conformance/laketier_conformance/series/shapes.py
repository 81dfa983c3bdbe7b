"""The kinds of tables that series are of, and their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from laketier.spi import BucketSpec, Feature, FeatureNotSupported, PartitionField
from laketier_conformance.lake import Lake, Table
from laketier_conformance.layouts import FUNCTIONS
from laketier_conformance.series.model import Row

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("value", pa.float64()), ("made", pa.int32())]
)
"""``made``: no two rows have the same, so that a row that came again is told from the one that was there before."""
WORDS = ("b", "B", "", " ", None, "ä", "a\u0308", "\U0001f986", "\uffff", "it's", "%_", "a" * 70, "null", "10", "9")
"""They sort otherwise by case, by a locale, by UTF-16, by number and when they are cut."""
PARTS = ("a", "A", None, "a/b", "a b", "a%2Fb")
_NESTED = pa.struct([("n", pa.int64()), ("l", pa.list_(pa.field("element", pa.string())))])


@dataclass(frozen=True)
class Shape:
    """``told``: for messages. ``of_others``: whether tools of others work on such tables, as far as the harness has
    them. ``feeds``: whether they keep a change feed, where the format has one."""

    told: str
    more: tuple[pa.Field, ...] = ()
    descriptor: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[Feature, ...] = ()
    keyed: bool = False
    of_others: bool = True
    feeds: bool = False
    steps: int = 12
    """Of each series."""

    @property
    def schema(self) -> pa.Schema:
        """Of a new table."""
        return pa.schema([*SCHEMA, *self.more])

    def row(self, id: int, made: int) -> Row:
        """A row: all follows from the two numbers, and some values are null."""
        row: dict[str, Any] = {
            "id": id,
            "name": WORDS[made % len(WORDS)],
            "value": None if made % 5 == 4 else made / 4,
            "made": made,
        }
        if any(each.name == "part" for each in self.more):
            row["part"] = PARTS[id % len(PARTS)]
        if any(each.name == "nested" for each in self.more):
            texts = [None, [], [None], ["x", ""]][made % 4]
            row["nested"] = None if made % 7 == 3 else {"n": None if made % 3 else made, "l": texts}
        return row

    def create(self, lake: Lake, name: str) -> Table:
        """A new table. Of bucket functions, the first that the format knows."""
        if "buckets" not in self.descriptor:
            return lake.create(self.schema, name, **self.descriptor)
        refusals = []
        for function in FUNCTIONS:
            try:
                return lake.create(self.schema, name, buckets=BucketSpec(3, ("id",), function))
            except FeatureNotSupported as refusal:
                refusals.append(refusal)
        raise refusals[0]


SHAPES: Mapping[str, Shape] = {
    "plain": Shape("a table", feeds=True, steps=30),
    "keyed": Shape(
        "a table with a primary key",
        descriptor={"primary_key": ("id",)},
        needs=(Feature.UPSERT,),
        keyed=True,
        feeds=True,
        steps=18,
    ),
    "partitioned": Shape(
        "a table with partitions",
        (pa.field("part", pa.string()),),
        {"partition_by": (PartitionField("part"),)},
        needs=(Feature.PARTITIONING,),
        of_others=False,
    ),
    "bucketed": Shape(
        "a table with buckets", descriptor={"buckets": None}, steps=8, needs=(Feature.BUCKETING,), of_others=False
    ),
    "nested": Shape("a table with nested columns", (pa.field("nested", _NESTED),), needs=(Feature.NESTED_TYPES,)),
}
