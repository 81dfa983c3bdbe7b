"""Keys of tables whose rows are replaced: no two are taken for one, and a file has keys of one partition and bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import (
    BucketSpec,
    Feature,
    FeatureNotSupported,
    IncompatibleData,
    IncompatibleTable,
    PartitionField,
    ScanRequest,
    UnsupportedType,
    WriteResult,
)
from laketier_conformance.expect import expect, goes_well, refused, the_one
from laketier_conformance.keyed import UPSERT, Keyed, publish
from laketier_conformance.lake import SCHEMA, Lake, Table
from laketier_conformance.odd_rows import UNPRESSED

pytestmark = pytest.mark.needs(Feature.UPSERT)


ALIKE: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (
        pa.string(),
        [
            "a",
            "A",
            "a ",
            " a",
            "",
            " ",
            "\u00e1",
            "a\u0301",
            "\u00df",
            "ss",
            "1",
            "01",
            "1.0",
            "+1",
            "1e0",
            "a\n",
            "NaN",
        ],
    ),
    "binary": (pa.binary(), [b"", b"a", b"A", b"a ", b"1", b"01", b"\xff", b"\xff\xff"]),
    "number": (pa.int64(), [2**53, 2**53 + 1, -(2**53) - 1, -1, 0, 2**32, 2**63 - 1, 2**63 - 2]),
}


@pytest.mark.parametrize("name", ALIKE)
def test_keys_that_are_alike(lake: Lake, name: str) -> None:
    """A database folds case, blanks or digits where a key's column has a collation or a type of its own: of two keys
    that it takes for one, a row is lost. One that it can't hold, as the empty text, it refuses."""
    kind, keys = ALIKE[name]
    schema = pa.schema([SCHEMA.field("id"), pa.field("key", kind, nullable=False)])
    try:
        table = lake.create(schema, primary_key=("key",))
    except UnsupportedType:
        return

    def staged(start: int, some: Sequence[Any]) -> WriteResult:
        rows = pa.record_batch([list(range(start, start + len(some))), pa.array(some, kind)], schema=schema)
        return table.stage_arrow([rows], mode=UPSERT)

    def is_taken(key: Any) -> bool:
        try:
            staged(0, [key])
        except IncompatibleData:
            return False
        return True

    keys = [key for key in keys if is_taken(key)]
    assert len(keys) > 1, f"of the keys {ALIKE[name][1]} a task takes more than one by itself: it took {keys}"
    half = len(keys) // 2
    publish(table, 0, staged(0, keys[:half]))
    publish(table, 1, staged(half, keys[half:]))
    expect(table.ids, list(range(len(keys))), f"the ids of rows whose keys are alike, and no two the same: {keys}")
    _are_all_replaced(table, 2, staged(100, keys), keys)


JOINTS = ("", "|", ",", ":", ";", "/", "-", "_", "__", ".", " ", "~", "\t", "\x1f", ",two:", "', '")
"""What stands between the parts of a key that is kept as one text."""


def test_keys_of_two_columns_that_are_alike_when_joined(lake: Lake) -> None:
    """A row is known by all columns of its key. As one text, some of these are one key, and a row is lost."""
    key = [pa.field(name, pa.string(), nullable=False) for name in ("one", "two")]
    schema = pa.schema([SCHEMA.field("id"), *key])
    try:
        table = lake.create(schema, primary_key=("one", "two"))
    except UnsupportedType:
        return
    pairs = [pair for each in JOINTS for pair in ((f"a{each}b", "c"), ("a", f"b{each}c"))]
    pairs += [("", "a"), ("a", ""), ("null", "a"), ("None", "a"), ("a", "a")]

    def staged(start: int, some: Sequence[tuple[str, str]]) -> WriteResult:
        ids = list(range(start, start + len(some)))
        rows = pa.record_batch([ids, *(pa.array(column) for column in zip(*some, strict=True))], schema=schema)
        return table.stage_arrow([rows], mode=UPSERT)

    def is_taken(pair: tuple[str, str]) -> bool:
        try:
            staged(0, [pair])
        except IncompatibleData:
            return False
        return True

    try:
        staged(0, pairs)
    except IncompatibleData:  # a database may hold no empty text, and no letter that is none
        pairs = [pair for pair in pairs if is_taken(pair)]
    assert len(pairs) > 1, f"a task takes more than one of these keys of two columns by itself: it took {pairs}"
    publish(table, 0, staged(0, pairs))
    expect(table.ids, list(range(len(pairs))), f"the ids of rows whose keys of two columns no two share: {pairs}")
    _are_all_replaced(table, 1, staged(100, pairs), pairs)


def _are_all_replaced(table: Table, epoch: int, result: WriteResult, keys: Sequence[Any]) -> None:
    """By rows of the same ``keys`` with ids from 100 on, instead of all files that are there."""
    files = tuple(file for split in table.source.plan(ScanRequest()).splits for file in split.files)
    publish(table, epoch, replace(result, replaced=files))
    expect(table.ids, list(range(100, 100 + len(keys))), f"the ids of rows after all of them were replaced: {keys}")


def test_keys_that_no_index_holds(lake: Lake) -> None:
    """A database may have an index by the key, and its entries a bound. Then the task refuses what is beyond, as an
    error of a server would end every replay; and what it takes is published, and replaced."""
    schema = pa.schema([SCHEMA.field("id"), pa.field("key", pa.string(), nullable=False)])
    table = lake.create(schema, primary_key=("key",))

    def staged(ids: Sequence[int]) -> WriteResult:
        rows = pa.record_batch([pa.array(ids), pa.array(["a", UNPRESSED, UNPRESSED + "2"])], schema=schema)
        return table.stage_arrow([rows], mode=UPSERT)

    long = f"a table whose key is a text, and one of {len(UNPRESSED)} letters"
    try:
        with goes_well(f"{long}: a task stages it", but=(IncompatibleData,)):
            first = staged([0, 1, 2])
    except IncompatibleData:
        return
    with goes_well(f"{long}: a task took it, and the driver publishes it"):
        publish(table, 0, first)
    plan = table.source.plan(ScanRequest())
    replaced = tuple(file for split in plan.splits for file in split.files)
    with goes_well(f"{long}: its row is replaced"):
        publish(table, 1, replace(staged([10, 11, 12]), replaced=replaced))
    expect(table.ids, [10, 11, 12], f"{long}: the ids after all rows were replaced")


def test_another_key_is_refused(lake: Lake) -> None:
    schema = pa.schema([SCHEMA.field("id"), SCHEMA.field("name").with_nullable(False)])
    table = lake.create(schema, primary_key=("name", "id"))
    expect(
        lake.create(schema, primary_key=("name", "id")).info,
        table.info,
        "a table with a primary key that is created again, as it is",
    )
    for key in (("name",), ("id", "name")):
        with refused(IncompatibleTable, f"a table is created again with the primary key {key}", match="primary key"):
            lake.create(schema, primary_key=key)
    expect(table.info.descriptor.primary_key, ("name", "id"), "the primary key after another one was refused")


@pytest.mark.needs(Feature.PARTITIONING)
def test_partitions(lake: Lake) -> None:
    """A key moves to another partition: the files of both are replaced, whatever their folders are called."""
    x, y, z = "x y", "ü%41/", "z"
    schema = pa.schema([*SCHEMA, pa.field("day", pa.string(), nullable=False)])
    table = lake.create(schema, partition_by=(PartitionField("day"),), primary_key=("id", "day"))

    def staged(rows: Sequence[tuple[int, str]], replaced: Sequence[str] = ()) -> WriteResult:
        ids, days = (list(column) for column in zip(*rows, strict=True))
        nulls = [pa.nulls(len(ids), pa.string()), pa.nulls(len(ids), pa.float64())]
        batch = pa.record_batch([pa.array(ids, pa.int64()), *nulls, pa.array(days)], schema=schema)
        return replace(table.stage_arrow([batch], mode=UPSERT), replaced=tuple(replaced))

    publish(table, 0, staged([(1, x), (2, x), (3, y), (4, z)]))
    files = {dict(split.partition)["day"]: split.files for split in table.source.plan(ScanRequest()).splits}
    expect(files.keys(), {x, y, z}, "the partitions of the table")
    publish(table, 1, staged([(1, x), (2, y), (3, y)], [*files[x], *files[y]]))
    read = table.read(columns=("id", "day")).sort_by("id").to_pydict()
    expect(read, {"id": [1, 2, 3, 4], "day": [x, y, y, z]}, "rows after a key moved to another partition")


@pytest.mark.needs(Feature.BUCKETING)
def test_buckets(lake: Lake) -> None:
    """Each split is of one bucket, and a key stays in its own when its file is replaced."""
    try:
        keyed = Keyed.of(lake.create(buckets=BucketSpec(3, ("id",)), primary_key=("id",)))
    except FeatureNotSupported:  # of a format that takes no function but its own
        keyed = Keyed.of(lake.create(buckets=BucketSpec(3, ("id",), lake.format), primary_key=("id",)))
    keyed.round(0, keyed.staged({i: f"row {i}" for i in range(30)}))
    before = {key: split.bucket for split, keys in keyed.splits() for key in keys}
    expect(set(before.values()), {0, 1, 2}, "the buckets of the table")
    changed = {key: "changed" for key, bucket in before.items() if bucket == 1}
    replaced = the_one(
        (split.files for split, _ in keyed.splits() if split.bucket == 1), "splits of one bucket of a round"
    )
    keyed.round(1, keyed.staged(changed, replaced))
    expect(
        {key: split.bucket for split, keys in keyed.splits() for key in keys},
        before,
        "the buckets of keys after a file was replaced",
    )
    expect(
        keyed.rows, {i: changed.get(i, f"row {i}") for i in range(30)}, "rows after the file of a bucket was replaced"
    )
