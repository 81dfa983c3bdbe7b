"""Create, load, alter, drop, list."""

from __future__ import annotations

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    Feature,
    IncompatibleTable,
    PartitionField,
    TableDescriptor,
    TableNotFound,
    TablePath,
)
from laketier.tiering import RoundOutcome
from laketier_conformance.lake import SCHEMA, Lake, Table, batch, ids_of, token

EXTRA = pa.field("extra", pa.string())


def test_create_and_load(lake: Lake) -> None:
    created = lake.storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(SCHEMA))
    loaded = lake.storage.catalog().load_table(TablePath("db", "t"))
    for info in (created, loaded):
        assert info.path == TablePath("db", "t")
        assert info.schema.names == SCHEMA.names
        assert [field.type for field in info.schema] == [field.type for field in SCHEMA]
        assert [field.nullable for field in info.schema] == [False, True, True]
        assert info.table_uuid
        assert info.location
        assert info.descriptor.partition_by == ()
    assert (created.table_uuid, created.schema_fingerprint) == (loaded.table_uuid, loaded.schema_fingerprint)
    assert lake.table("db.t").ids == []


def test_create_is_idempotent(table: Table) -> None:
    table.append(0)
    again = table.lake.create()
    assert again.info.table_uuid == table.info.table_uuid
    assert again.ids == ids_of(0)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(pa.schema([SCHEMA.field(0), SCHEMA.field(1)]), id="fewer-columns"),
        pytest.param(pa.schema([*SCHEMA, EXTRA]), id="more-columns"),
        pytest.param(pa.schema([SCHEMA.field(1), SCHEMA.field(0), SCHEMA.field(2)]), id="other-order"),
        pytest.param(pa.schema([SCHEMA.field(0), SCHEMA.field(1), ("value", pa.string())]), id="other-type"),
        pytest.param(pa.schema([("id", pa.int64()), SCHEMA.field(1), SCHEMA.field(2)]), id="other-nullability"),
    ],
)
def test_another_schema_is_refused(table: Table, schema: pa.Schema) -> None:
    table.append(0)
    with pytest.raises(IncompatibleTable):
        table.lake.create(schema)
    assert table.ids == ids_of(0)


@pytest.mark.needs(Feature.PARTITIONING)
def test_another_partitioning_is_refused(table: Table) -> None:
    with pytest.raises(IncompatibleTable):
        table.lake.create(partition_by=(PartitionField("name"),))
    assert table.info.descriptor.partition_by == ()


def test_a_table_that_is_not_there(lake: Lake) -> None:
    catalog, missing = lake.storage.catalog(), TablePath("db", "missing")
    with pytest.raises(TableNotFound, match="missing"):
        catalog.load_table(missing)
    assert catalog.list_tables() == []


@pytest.mark.needs(Feature.DROP_TABLE)
def test_dropping_what_is_not_there(lake: Lake) -> None:
    lake.create()
    with pytest.raises(TableNotFound):
        lake.storage.catalog().drop_table(TablePath("db", "missing"))
    lake.storage.catalog().drop_table(TablePath("db", "t"))
    with pytest.raises(TableNotFound):
        lake.storage.catalog().drop_table(TablePath("db", "t"))


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_altering_what_is_not_there(table: Table) -> None:
    catalog = table.lake.storage.catalog()
    with pytest.raises(TableNotFound):
        catalog.alter_table(TablePath("db", "missing"), [AddColumn(EXTRA)])
    catalog.alter_table(table.path, [AddColumn(EXTRA)])


def test_list(lake: Lake) -> None:
    for name in ("b.two", "a.one", "b.one", "a-1.x_y", "B_2.z"):
        lake.create(name=name)
    catalog = lake.storage.catalog()
    paths = catalog.list_tables()
    assert paths == sorted(paths)
    assert set(map(str, paths)) == {"b.two", "a.one", "b.one", "a-1.x_y", "B_2.z"}
    assert [str(path) for path in catalog.list_tables("b")] == ["b.one", "b.two"]
    assert catalog.list_tables("nothing") == []


def test_tables_do_not_mix(lake: Lake) -> None:
    one, two = lake.create(name="db.one"), lake.create(name="db.two")
    one.append(0)
    assert two.ids == []
    assert two.watermark() is None
    assert two.append(0, ids_of(5)).outcome is RoundOutcome.PUBLISHED
    assert (one.ids, two.ids) == (ids_of(0), ids_of(5))


@pytest.mark.needs(Feature.DROP_TABLE)
def test_drop(table: Table) -> None:
    table.append(0)
    uuid = table.info.table_uuid
    table.lake.storage.catalog().drop_table(table.path)
    with pytest.raises(TableNotFound):
        _ = table.info
    assert table.lake.storage.catalog().list_tables() == []
    again = table.lake.create()
    assert again.info.table_uuid != uuid
    assert again.ids == []
    assert again.watermark() is None, "the watermark went with the table"


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_add_a_column(table: Table) -> None:
    table.append(0)
    altered = table.lake.storage.catalog().alter_table(table.path, [AddColumn(EXTRA)])
    assert altered.schema.names == [*SCHEMA.names, "extra"]
    assert altered.schema_fingerprint == table.info.schema_fingerprint
    assert table.read()["extra"].to_pylist() == [None] * 5
    rows = batch(ids_of(1)).append_column(EXTRA, pa.array(["e"] * 5))
    table.publish_arrow([rows], token(1))
    read = table.read().sort_by("id")
    assert read["extra"].to_pylist() == [None] * 5 + ["e"] * 5
    assert read["id"].to_pylist() == ids_of(0) + ids_of(1)


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_adding_twice_is_the_same_as_once(table: Table) -> None:
    catalog = table.lake.storage.catalog()
    change = [AddColumn(EXTRA), AddColumn(pa.field("more", pa.float64()))]
    first = catalog.alter_table(table.path, change)
    second = catalog.alter_table(table.path, change)
    assert first.schema_fingerprint == second.schema_fingerprint
    assert second.schema.names == [*SCHEMA.names, "extra", "more"]


@pytest.mark.needs(Feature.ADD_COLUMN)
@pytest.mark.parametrize(
    "field",
    [
        pytest.param(pa.field("name", pa.int64()), id="other-type"),
        pytest.param(pa.field("extra", pa.string(), nullable=False), id="not-null"),
    ],
)
def test_a_change_that_does_not_fit_is_refused(table: Table, field: pa.Field) -> None:
    with pytest.raises(IncompatibleTable):
        table.lake.storage.catalog().alter_table(
            table.path, [AddColumn(pa.field("fine", pa.int64())), AddColumn(field)]
        )
    assert table.info.schema.names == SCHEMA.names, "all changes, or none"


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_watermarks_survive_a_change(table: Table) -> None:
    table.append(0)
    table.append(0, ids_of(5), pipeline="other")
    table.lake.storage.catalog().alter_table(table.path, [AddColumn(EXTRA)])
    assert table.append(0).outcome is RoundOutcome.ALREADY_THERE
    assert table.append(1).outcome is RoundOutcome.PUBLISHED
    assert table.append(0, ids_of(5), pipeline="other").outcome is RoundOutcome.ALREADY_THERE
    assert len(table.ids) == 15
