"""The description of a table as the disk tier of the metadata cache has it."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pyarrow as pa

from laketier.spi import BucketSpec, PartitionField, TableDescriptor, TableInfo, TablePath, Transform, host_time
from laketier.tables.metadata.document import Saved

KEY = '{"by":"laketier","format":"f","table":"db.t","warehouse":"/lake"}'
NAME = hashlib.sha256(KEY.encode()).hexdigest()
FIELD = pa.field("when", pa.timestamp("us", "UTC"), metadata={"PARQUET:field_id": "1"})
SCHEMA = pa.schema([FIELD, pa.field("key", pa.string(), nullable=False), pa.field("s", pa.struct([("a", pa.int8())]))])
TABLE = TableInfo(
    TablePath("db", "t"),
    TableDescriptor(
        SCHEMA,
        (PartitionField("when", Transform.DAY), PartitionField("key", Transform.TRUNCATE, 4)),
        BucketSpec(3, ("key",), "iceberg"),
        ("key",),
        {"owner": "ä 日本 \u2028 \U0001f986"},
        "a comment",
    ),
    "uuid",
    "/lake/db/t",
    2**62,
    7,
)


def saved(**changes: object) -> Saved:
    return replace(Saved(KEY, "version", host_time(), {"/lake": "/lake/db/t"}, TABLE), **changes)  # type: ignore[arg-type]
