"""The schema of a table after changes, and the tables that are the same."""

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
    SchemaChange,
    TableDescriptor,
    TableInfo,
    TablePath,
    Transform,
    WidenColumn,
    reshaped,
    same_table,
)

SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string()), ("day", pa.date32()), ("n", pa.float32())])
DESCRIPTOR = TableDescriptor(
    SCHEMA, partition_by=(PartitionField("day"),), buckets=BucketSpec(4, ("name",)), primary_key=("id",)
)


def _info(schema: pa.Schema = SCHEMA, **more: Any) -> TableInfo:
    return TableInfo(TablePath("db", "t"), TableDescriptor(schema, **more), "uuid", "memory:")


def _after(*changes: SchemaChange, **more: Any) -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in reshaped(_info(**more), changes)]


PLAIN = [("id", "int32"), ("name", "string"), ("day", "date32[day]"), ("n", "float")]


def test_columns_keep_their_places() -> None:
    changes = (RenameColumn("name", "label"), WidenColumn("id", pa.int64()), AddColumn(pa.field("more", pa.int8())))
    assert _after(*changes) == [("id", "int64"), ("label", "string"), *PLAIN[2:]]
    assert _after() == PLAIN


def test_what_is_done_already_is_done() -> None:
    """All of it, or a part: of a change that was made and whose answer was lost, and of one half made."""
    assert _after(WidenColumn("id", pa.int32()), RenameColumn("label", "name")) == PLAIN
    both = (RenameColumn("label", "name"), WidenColumn("label", pa.string()))
    assert _after(*both) == PLAIN
    assert _after(RenameColumn("number", "n"), WidenColumn("number", pa.float64()))[3] == ("n", "double")
    assert _after(WidenColumn("day", pa.date32()), partition_by=(PartitionField("day"),)) == PLAIN


def test_a_rename_may_make_room_for_another() -> None:
    assert _after(RenameColumn("name", "label"), RenameColumn("n", "name"))[1:] == [
        ("label", "string"),
        ("day", "date32[day]"),
        ("name", "float"),
    ]


@pytest.mark.parametrize("there", ["n", "number"])
def test_no_column_is_renamed_twice(there: str) -> None:
    """Of columns that take each other's names by way of a third one, the last rename looked done before the first."""
    turns = (RenameColumn("name", "t"), RenameColumn(there, "name"), RenameColumn("t", there))
    with pytest.raises(IncompatibleTable, match=rf"db\.t: column 't' can't be renamed to '{there}', .* a column once"):
        _after(*turns)


def test_a_rename_is_not_done_by_a_column_that_makes_room() -> None:
    with pytest.raises(IncompatibleTable, match=r"db\.t: there is no column 'x' to change"):
        _after(RenameColumn("name", "label"), RenameColumn("x", "name"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (WidenColumn("x", pa.int64()), "there is no column 'x' to change"),
        (RenameColumn("x", "y"), "there is no column 'x' to change"),
        (WidenColumn("id", pa.int16()), "is int32, which can't become int16"),
        (WidenColumn("id", pa.float64()), "is int32, which can't become double"),
        (RenameColumn("id", "name"), "can't be renamed to 'name', because there is a column 'name' already"),
        (RenameColumn("id", "NAME"), "can't be renamed to 'NAME', because there is a column 'name' already"),
        (AddColumn(pa.field("Name", pa.int8())), "column 'Name' can't be added"),
    ],
)
def test_what_does_not_fit_is_refused(change: SchemaChange, told: str) -> None:
    with pytest.raises(IncompatibleTable, match=rf"db\.t: .*{told}"):
        _after(change)


def test_a_column_may_change_the_case_of_its_own_name() -> None:
    assert _after(RenameColumn("id", "ID"))[0] == ("ID", "int32")


@pytest.mark.parametrize(
    "laid_out",
    [{"partition_by": (PartitionField("id"),)}, {"buckets": BucketSpec(2, ("id",))}, {"primary_key": ("id",)}],
)
@pytest.mark.parametrize("change", [WidenColumn("id", pa.int64()), RenameColumn("id", "key")])
def test_a_column_that_says_where_rows_lie_stays(laid_out: dict[str, Any], change: SchemaChange) -> None:
    with pytest.raises(IncompatibleTable, match=r"db\.t: column 'id' can't be changed"):
        _after(change, **laid_out)
    assert _after(WidenColumn("n", pa.float64()), **laid_out)[3] == ("n", "double")


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"schema": SCHEMA.append(pa.field("more", pa.int8()))}, "schema"),
        ({"partition_by": ()}, "partitioning"),
        ({"buckets": None}, "bucketing"),
        ({"buckets": BucketSpec(5, ("name",))}, "bucketing"),
        ({"primary_key": ("id", "name")}, "primary key"),
    ],
)
def test_a_table_that_differs_is_not_the_same(other: dict[str, Any], what: str) -> None:
    found = replace(_info(), descriptor=DESCRIPTOR)
    assert same_table(found, DESCRIPTOR) is found
    assert same_table(found, replace(DESCRIPTOR, primary_key=())) is found, "nobody asked for a key"
    with pytest.raises(IncompatibleTable, match=rf"^db\.t: the table exists with another {what}"):
        same_table(found, replace(DESCRIPTOR, **other))


def test_a_key_that_the_table_does_not_have_is_asked_for_in_vain() -> None:
    found = replace(_info(), descriptor=replace(DESCRIPTOR, primary_key=()))
    with pytest.raises(IncompatibleTable, match="another primary key"):
        same_table(found, DESCRIPTOR)


@pytest.mark.parametrize(("count", "keys"), [(0, ("id",)), (-1, ("id",)), (3, ())])
def test_buckets_are_some_and_by_something(count: int, keys: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="buckets by"):
        BucketSpec(count, keys)
    assert BucketSpec(1, ("id",)).count == 1


def test_widths_begin_at_one() -> None:
    assert PartitionField("id", Transform.BUCKET, 1).width == 1
    with pytest.raises(ConfigError, match="has width 0"):
        PartitionField("id", Transform.BUCKET, 0)
