from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    BucketSpec,
    ConfigError,
    IncompatibleTable,
    PartitionField,
    RenameColumn,
    TableDescriptor,
    TableInfo,
    TablePath,
    Transform,
    reshaped,
    same_table,
    schema_fingerprint,
)
from laketier.spi.schema import FIELD_ID

I64 = pa.int64()


@pytest.mark.parametrize("name", ["sales.orders", "a.b-c", "_x.1"])
def test_names(name: str) -> None:
    assert str(TablePath.parse(name)) == name


@pytest.mark.parametrize("name", ["orders", "a.", ".b", "a.b.c", "a./b", "a...", "a.b c", "a.b\n", "-a.b", "a.ö"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(ConfigError):
        TablePath.parse(name)


@pytest.mark.parametrize(
    ("text", "field", "name"),
    [
        ("region", PartitionField("region"), "region"),
        (" region ", PartitionField("region"), "region"),
        ("identity(region)", PartitionField("region"), "region"),
        ("day(ts)", PartitionField("ts", Transform.DAY), "ts_day"),
        ("days(ts)", PartitionField("ts", Transform.DAY), "ts_day"),
        ("bucket(16, id)", PartitionField("id", Transform.BUCKET, 16), "id_bucket"),
        ("truncate(4,name)", PartitionField("name", Transform.TRUNCATE, 4), "name_trunc"),
    ],
)
def test_partition_fields(text: str, field: PartitionField, name: str) -> None:
    assert PartitionField.parse(text) == field
    assert field.name == name
    assert PartitionField.parse(str(field)) == field


@pytest.mark.parametrize("text", ["", "bucket(id)", "day(3, ts)", "bucket(0, id)", "week(ts)", "day(ts", "day()"])
def test_what_is_no_partition_field(text: str) -> None:
    with pytest.raises(ConfigError):
        PartitionField.parse(text)


@pytest.mark.parametrize(
    "fields",
    [
        {"schema": pa.schema([])},
        {"schema": pa.schema([("a", I64), ("A", I64)])},
        {"schema": pa.schema([("a", I64)]), "partition_by": (PartitionField("b"),)},
        {"schema": pa.schema([("a", I64)]), "primary_key": ("b",)},
        {"schema": pa.schema([("a", I64)]), "buckets": BucketSpec(4, ("b",))},
    ],
)
def test_what_is_no_table(fields: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        TableDescriptor(**fields)  # type: ignore[arg-type]


def ided(kind: pa.DataType, number: int) -> pa.Field:
    return pa.field("a", kind, metadata={FIELD_ID: str(number).encode()})


BASE = pa.schema([pa.field("a", I64), pa.field("b", pa.struct([pa.field("c", I64)]))])


@pytest.mark.parametrize(
    "other",
    [
        pa.schema([BASE.field(1), BASE.field(0)]),
        pa.schema([pa.field("a", I64, nullable=False), BASE.field(1)]),
        pa.schema([pa.field("a", pa.int32()), BASE.field(1)]),
        pa.schema([BASE.field(0), pa.field("b", pa.struct([pa.field("d", I64)]))]),
        pa.schema([BASE.field(0), pa.field("b", pa.struct([pa.field("c", I64, nullable=False)]))]),
        pa.schema([BASE.field(0), pa.field("b", pa.list_(I64))]),
        pa.schema([BASE.field(0), BASE.field(1), pa.field("z", I64)]),
        pa.schema([BASE.field(0)]),
        pa.schema([ided(I64, 1), BASE.field(1)]),
    ],
)
def test_another_schema_has_another_fingerprint(other: pa.Schema) -> None:
    assert schema_fingerprint(BASE) != schema_fingerprint(other)


def test_a_fingerprint_is_stable() -> None:
    """It is stored in tables: changing it refuses every round in flight."""
    assert schema_fingerprint(BASE) == schema_fingerprint(BASE.with_metadata({"k": "v"}))
    assert len(schema_fingerprint(BASE)) == 16
    assert schema_fingerprint(pa.schema([ided(I64, 1)])) != schema_fingerprint(pa.schema([ided(I64, 2)]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.list_(pa.float32(), 2), pa.list_(pa.float32(), 3)),
        (pa.list_(I64), pa.large_list(I64)),
        (pa.map_(pa.string(), I64), pa.map_(pa.string(), pa.int32())),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.decimal128(10, 2), pa.decimal128(10, 3)),
    ],
)
def test_nested_types_are_told_apart(one: pa.DataType, other: pa.DataType) -> None:
    assert schema_fingerprint(pa.schema([("a", one)])) != schema_fingerprint(pa.schema([("a", other)]))


WANTED = TableDescriptor(
    pa.schema([pa.field("id", I64, nullable=False), ("day", pa.date32())]),
    (PartitionField("day"),),
    BucketSpec(4, ("id",)),
)


def test_the_same_table_is_returned() -> None:
    found = TableInfo(TablePath("db", "t"), replace(WANTED, properties={"k": "v"}, comment="c"), "uuid", "/w/db/t")
    numbered = replace(WANTED, schema=pa.schema([f.with_metadata({FIELD_ID: "1"}) for f in WANTED.schema]))
    assert same_table(found, numbered) is found


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (
            replace(WANTED, schema=WANTED.schema.set(0, pa.field("id", I64))),
            r"another schema, because it has \(id int64, day .*and \(id int64 not null",
        ),
        (replace(WANTED, partition_by=()), r"another partitioning, because it has \(\), and \(day\) was"),
        (replace(WANTED, buckets=None), r"another bucketing, because it has none, and bucket\(4, id\) was"),
    ],
    ids=["schema", "partitioning", "bucketing"],
)
def test_another_table_is_refused_with_both_descriptions(other: TableDescriptor, says: str) -> None:
    with pytest.raises(IncompatibleTable, match=says):
        same_table(TableInfo(TablePath("db", "t"), other, "uuid", "/w/db/t"), WANTED)


@pytest.mark.parametrize("added", [("ID",), ("x", "X")])
def test_no_change_adds_a_column_that_differs_by_case_only(added: tuple[str, ...]) -> None:
    table = TableInfo(TablePath("db", "t"), TableDescriptor(pa.schema([("id", I64)])), "uuid", "/t")
    changes = [AddColumn(pa.field(name, I64)) for name in added]
    with pytest.raises(IncompatibleTable, match="by case only"):
        reshaped(table, changes)
    assert reshaped(table, [RenameColumn("id", "ID")]).names == ["ID"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"comment": "a\udce9"}, "the comment 'a.udce9' can't be stored"),
        ({"properties": {"\udce9": "a"}}, "the property '.udce9' can't be stored"),
        ({"properties": {"note": "\udce9"}}, "the value of property 'note', '.udce9' can't be stored"),
    ],
)
def test_text_that_no_table_can_store(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        TableDescriptor(pa.schema([("id", pa.int64())]), **fields)
