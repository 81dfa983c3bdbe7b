"""Create, load, alter, drop, list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    BucketSpec,
    Feature,
    FeatureNotSupported,
    IncompatibleTable,
    LakeCatalog,
    LakeStorage,
    LaketierError,
    PartitionField,
    RenameColumn,
    SetProperty,
    TableDescriptor,
    TableInfo,
    TableNotFound,
    TablePath,
    UnsupportedType,
    WidenColumn,
)
from laketier.tiering import RoundOutcome, TieringRound, write_task
from laketier_conformance.expect import difference, expect, refused, told
from laketier_conformance.lake import SCHEMA, Lake, Opened, Table, batch, ids_of, read_plan, token
from laketier_conformance.outside import local_folder, sibling

EXTRA = pa.field("extra", pa.string())
TAKEN = {"PARQUET:field_id": "1"}
"""What a column says of itself that came from a file of Parquet."""


def test_create_and_load(lake: Lake) -> None:
    created = lake.storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(SCHEMA))
    loaded = lake.storage.catalog().load_table(TablePath("db", "t"))
    for info in (created, loaded):
        expect(info.path, TablePath("db", "t"), "the path of a table that was just created")
        expect(info.schema.names, SCHEMA.names, "the columns of a table that was just created")
        expect(
            [field.type for field in info.schema],
            [field.type for field in SCHEMA],
            "the types of a table that was just created",
        )
        expect(
            [field.nullable for field in info.schema],
            [False, True, True],
            "which columns of a table that was just created may be null",
        )
        assert info.table_uuid, "a table has a uuid"
        assert info.location, "a table has a location"
        expect(info.descriptor.partition_by, (), "the partitioning of a table that was created without one")
    expect(
        (created.table_uuid, created.schema_fingerprint),
        (loaded.table_uuid, loaded.schema_fingerprint),
        "uuid and fingerprint that creating and loading a table tell",
    )
    expect(lake.table("db.t").ids, [], "rows of a table that was just created")


def test_a_comment_stays_as_it_is(lake: Lake) -> None:
    """Where the format keeps comments at all: they are for people."""
    comment = "Orders, as they come in: 'quoted', \"twice\", \u00e9, 100 %"
    told = lake.create(name="db.told", comment=comment).info.descriptor.comment
    assert told in (comment, None), f"the comment of a table is the one that it was given, {comment!r}: found {told!r}"
    expect(lake.create(name="db.silent").info.descriptor.comment, None, "the comment of a table that has none")
    _is_kept_whole(lake, "a comment", lambda text: {"comment": text}, lambda info: info.descriptor.comment)


def _is_kept_whole(
    lake: Lake, what: str, given: Callable[[str], dict[str, Any]], told: Callable[[TableInfo], str | None]
) -> None:
    """Past the lengths at which columns of catalogs end: 255, 4,000 and 65,535. What is too long is refused."""
    for number, length in enumerate((256, 4_001, 66_000)):
        text = "ab\u00e9 " * (length // 4) + "end"
        try:
            found = told(lake.create(name=f"db.long{number}", **given(text)).info)
        except LaketierError:
            return
        assert found in (None, text), (
            f"{what} of {len(text)} letters is kept whole, or refused: found {len(found or '')} letters of it"
        )


def test_properties_stay_as_they_are(lake: Lake) -> None:
    """Those that the format keeps: it may have no place for a name that it does not know."""
    values = ("x=y", "two\nlines", "# no comment", " blanks ", "\u00e9 'q' \"q\" \\ 100 %", "TRUE", "007", "")
    asked = {f"note.{number}": value for number, value in enumerate(values)}
    told = lake.create(name="db.told", properties=asked).info.descriptor.properties
    kept = {name: value for name, value in told.items() if name.startswith("note.")}
    assert not kept or kept == asked, f"properties of a table that are kept: {difference(kept, asked)}"
    cased = {"note.Case": "one", "Note.case": "two"}
    told = lake.create(name="db.cased", properties=cased).info.descriptor.properties
    kept = {name: value for name, value in told.items() if name.lower() == "note.case"}
    assert not kept or kept == cased, f"properties whose names differ by case: {difference(kept, cased)}"
    _is_kept_whole(
        lake,
        "a property",
        lambda text: {"properties": {"acme.note": text}},
        lambda info: info.descriptor.properties.get("acme.note"),
    )


def test_metadata_of_columns_do_not_count(lake: Lake) -> None:
    """They belong to where the rows came from. A table that is created again is the same, whatever they say."""
    for origin in ("here", "there"):
        schema = pa.schema([field.with_metadata({"origin": origin}) for field in SCHEMA])
        info = lake.create(schema.with_metadata({"origin": origin})).info
        fields = [(field.name, field.type, field.nullable) for field in info.schema]
        expect(fields, [(field.name, field.type, field.nullable) for field in SCHEMA], "the columns of the table")
    table = lake.table("db.t")
    table.append(0)
    expect(table.ids, ids_of(0), "rows of a table that was created with metadata of columns")


def test_ids_of_columns_are_the_tables_own(lake: Lake) -> None:
    """Rows that came from files of Parquet bring the ids that columns had there. They mean nothing here: the table is
    written and read as without them, and two columns with one id stay two."""
    noted = lake.create(pa.schema([field.with_metadata(TAKEN) for field in SCHEMA]), "db.noted")
    _tells_each_column(noted)
    noted.append(0)
    expect(
        noted.read().sort_by("id"),
        pa.Table.from_batches([batch(ids_of(0))]),
        "rows of a table whose columns had one id elsewhere",
    )
    if not lake.declares(Feature.ADD_COLUMN):
        return
    lake.storage.catalog().alter_table(noted.path, [AddColumn(EXTRA.with_metadata(TAKEN))])
    _tells_each_column(noted)
    rows = batch(ids_of(1)).append_column(EXTRA, pa.array(["e"] * 5))
    noted.publish_arrow([rows], token(1))
    read = noted.read().sort_by("id")
    expect(read["extra"].to_pylist(), [None] * 5 + ["e"] * 5, "values of a column that had the id of another elsewhere")
    expect(read["id"].to_pylist(), ids_of(0) + ids_of(1), "rows beside a column that had their id elsewhere")


def _tells_each_column(table: Table) -> None:
    """Where a table tells ids of its columns at all, no two are the same."""
    told = [(field.metadata or {}).get(b"PARQUET:field_id") for field in table.info.schema]
    ids = [each for each in told if each is not None]
    assert len(set(ids)) == len(ids), (
        f"columns of a table have ids of their own, whatever they had elsewhere: {ids} in the metadata of the fields "
        "of TableInfo.schema (take PARQUET:field_id out of each field, as `Schema.remove_metadata` leaves it there)"
    )


@pytest.mark.needs(Feature.UPSERT)
def test_a_key_keeps_its_order(lake: Lake) -> None:
    """It is the order in which rows are sorted, or hashed, by whoever merges them. Some libraries have a key as a set,
    and give it an order of their own with each change of the columns."""
    key = ("z", "M", "a", "y", "B", "x")
    schema = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in sorted(key)])
    table = lake.create(schema, "db.keyed", primary_key=key)
    expect(table.info.descriptor.primary_key, key, "the key of a table")
    if lake.declares(Feature.ADD_COLUMN):
        changed = lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int64()))])
        expect(changed.descriptor.primary_key, key, "the key of a table, as it is told by a change that adds a column")
        expect(table.info.descriptor.primary_key, key, "the key of a table after a column was added")


@pytest.mark.needs(Feature.PARTITIONING)
def test_partitions_keep_their_order(lake: Lake) -> None:
    """Who reads folders by their place finds the outer one first."""
    schema = pa.schema([("a", pa.string()), ("z", pa.string()), ("M", pa.string()), ("id", pa.int64())])
    fields = tuple(map(PartitionField, ("z", "M", "a")))
    table = lake.create(schema, "db.parted", partition_by=fields)
    expect(table.info.descriptor.partition_by, fields, "the partitioning of a table of three columns")
    rows = pa.record_batch([*(pa.array([value]) for value in "xyz"), pa.array([1])], schema=schema)
    staged = table.stage_arrow([rows])
    found = {name: dict(staged.files[0].partition).get(name) for name in ("a", "z", "M")}
    expect(found, {"a": "x", "z": "y", "M": "z"}, "the partition that a result names")


def test_names_that_are_alike_when_joined_stay_apart(lake: Lake) -> None:
    """Database and name of a table are two: joined, some pairs would be one."""
    names = ("a_b.c", "a.b_c", "a__b.c", "a_.b__c", "a-b.c", "a.b-c")
    for number, name in enumerate(names):
        lake.create(name=name).append(0, [number])
    for number, name in enumerate(names):
        expect(lake.table(name).ids, [number], f"rows of {name}, beside tables of names that are alike when joined")
    listed = lake.storage.catalog().list_tables()
    expect(listed, sorted(map(TablePath.parse, names)), "the tables of the warehouse")


def test_create_is_idempotent(table: Table) -> None:
    table.append(0)
    asked = TableDescriptor(SCHEMA, comment="of whoever comes later")
    told = table.lake.storage.catalog().create_table(table.path, asked)
    again = table.lake.create()
    expect(again.info.table_uuid, table.info.table_uuid, "the uuid of a table that is created again, as it is")
    expect(told, again.info, "what create_table returns for a table that is there: the table, not what was asked for")
    expect(again.ids, ids_of(0), "rows of a table that is created again, as it is")


def test_creating_again_commits_nothing(lake: Lake) -> None:
    """Whatever its columns ask of a table, as a time without a zone or a column without nulls may, is there by then."""
    for number, kind in enumerate((pa.string(), pa.timestamp("us"), pa.timestamp("us", "UTC"))):
        schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("at", kind, nullable=False)])
        try:
            table = lake.create(schema, f"db.t{number}")
        except UnsupportedType:
            continue
        before = table.info.snapshot_id
        lake.create(schema, f"db.t{number}")
        expect(table.info.snapshot_id, before, f"the snapshot of a table with a {kind} that is created again, as it is")


def test_creating_again_leaves_comment_and_properties(lake: Lake) -> None:
    """Who creates a table that is there, with what a configuration says by now, gets it as it is: somebody may have
    changed a property since, and a pipeline that starts anew would undo that."""
    first = {"acme.note": "first", "acme.kept": "yes"}
    before = lake.create(comment="of people", properties=first).info.descriptor
    for comment, properties in ((None, {}), ("of others", {"acme.note": "second", "acme.more": "new"})):
        try:
            again = lake.create(comment=comment, properties=properties).info.descriptor
        except IncompatibleTable:
            continue
        what = f"of a table that is created again with {properties or 'none'}"
        expect(again.comment, before.comment, f"the comment {what}")
        mine = {name: value for name, value in again.properties.items() if name.startswith("acme.")}
        was = {name: value for name, value in before.properties.items() if name.startswith("acme.")}
        expect(mine, was, f"the properties {what}")


def test_a_table_made_as_another_one_is_described(lake: Lake) -> None:
    """It has the columns, comment and properties that the other one tells, and nothing of its rows or its rounds. What
    a format keeps among the properties, as a watermark, must not come along: a pipeline would take its epochs for
    there. A format may refuse a property that it tells."""
    first = lake.create(name="db.first", comment="of people", properties={"acme.note": "stays"})
    for epoch in (0, 1):
        first.append(epoch)
    described = first.info
    try:
        lake.storage.catalog().create_table(TablePath("db", "second"), described.descriptor)
    except LaketierError:
        expect(lake.storage.catalog().list_tables(), [first.path], "the tables after another one's description failed")
        return
    second = lake.table("db.second")
    info = second.info
    what = "of a table that was made as another one is described"
    expect(info.table_uuid == described.table_uuid, False, f"whether the identity is the other one's, {what}")
    # Tables of a database may be found at the same place, which has no files of theirs.
    shared = info.location == described.location and Path(info.location).is_dir()
    at = f"{info.location}, which is a folder; name a folder of its own, or the file that has all tables"
    expect(shared, False, f"whether TableInfo.location is the other one's, {what} ({at})")
    expect(info.descriptor.comment, described.descriptor.comment, f"the comment {what}")
    mine, theirs = (each.descriptor.properties.get("acme.note") for each in (info, described))
    expect(mine, theirs, f"a property {what}")
    expect((second.ids, second.watermark()), ([], None), f"the rows and the watermark {what}")
    for epoch in (0, 1):
        outcome = second.append(epoch, ids_of(7 + epoch)).outcome
        expect(outcome, RoundOutcome.PUBLISHED, f"the outcome of epoch {epoch} {what}")
    expect(second.ids, ids_of(7) + ids_of(8), f"the rows of two rounds {what}")
    expect(first.ids, ids_of(0) + ids_of(1), "the rows of a table after another one was made as it is described")


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
    with refused(IncompatibleTable, "a table that is there is created with another schema"):
        table.lake.create(schema)
    expect(table.ids, ids_of(0), "rows of a table after another schema was refused")


@pytest.mark.needs(Feature.PARTITIONING)
def test_another_partitioning_is_refused(table: Table) -> None:
    with refused(IncompatibleTable, "a table that is there is created with another partitioning"):
        table.lake.create(partition_by=(PartitionField("name"),))
    expect(table.info.descriptor.partition_by, (), "the partitioning of a table after another one was refused")


def test_a_table_that_is_not_there(lake: Lake) -> None:
    catalog, missing = lake.storage.catalog(), TablePath("db", "missing")
    with refused(TableNotFound, "a table that is not there is loaded", match="missing"):
        catalog.load_table(missing)
    expect(catalog.list_tables(), [], "the tables of a warehouse after one that is not there was loaded")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_dropping_what_is_not_there(lake: Lake) -> None:
    lake.create()
    with refused(TableNotFound, "a table that is not there is dropped"):
        lake.storage.catalog().drop_table(TablePath("db", "missing"))
    lake.storage.catalog().drop_table(TablePath("db", "t"))
    with refused(TableNotFound, "a table is dropped twice"):
        lake.storage.catalog().drop_table(TablePath("db", "t"))


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_altering_what_is_not_there(table: Table) -> None:
    catalog = table.lake.storage.catalog()
    with refused(TableNotFound, "a table that is not there is altered"):
        catalog.alter_table(TablePath("db", "missing"), [AddColumn(EXTRA)])
    catalog.alter_table(table.path, [AddColumn(EXTRA)])


def test_list(lake: Lake) -> None:
    for name in ("b.two", "a.one", "b.one", "a-1.x_y", "B_2.z", "Bx2.z"):
        lake.create(name=name)
    catalog = lake.storage.catalog()
    paths = catalog.list_tables()
    expect(paths, sorted(paths), "tables are listed in their order")
    expect(
        set(map(str, paths)), {"b.two", "a.one", "b.one", "a-1.x_y", "B_2.z", "Bx2.z"}, "the tables of the warehouse"
    )
    expect(
        [catalog.load_table(path).path for path in paths], paths, "the names that tables tell, beside the listed ones"
    )
    expect([str(path) for path in catalog.list_tables("b")], ["b.one", "b.two"], "the tables of one database")
    expect([str(path) for path in catalog.list_tables("B_2")], ["B_2.z"], "the tables of a database whose name has a _")
    try:
        found = catalog.list_tables("nothing")
    except Exception as error:  # noqa: BLE001 - reported
        pytest.fail(f"the tables of a database that is not there are listed: expected none, found {told(error)}")
    expect(found, [], "the tables of a database that is not there")


def test_a_list_of_many_tables_is_whole(lake: Lake, pytestconfig: pytest.Config) -> None:
    """Lists of catalogs come in pages, of 100 tables as often as not. ``--lake-commits`` is thrice as many."""
    most = int(pytestconfig.getoption("lake_commits")) // 3 + 1
    names = [f"db.t{number:03}" for number in range(most)]
    catalog = lake.storage.catalog()
    for name in names:
        catalog.create_table(TablePath.parse(name), TableDescriptor(SCHEMA))
    expect([str(path) for path in catalog.list_tables()], names, f"the tables of a warehouse of {most}")
    expect([str(path) for path in catalog.list_tables("db")], names, f"the tables of a database of {most}")


def test_tables_do_not_mix(lake: Lake) -> None:
    one, two = lake.create(name="db.one"), lake.create(name="db.two")
    one.append(0)
    expect(two.ids, [], "rows of a table after an append to the one beside it")
    expect(two.watermark(), None, "the watermark of a table after an append to the one beside it")
    expect(
        two.append(0, ids_of(5)).outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of the first round of a table beside another one",
    )
    expect((one.ids, two.ids), (ids_of(0), ids_of(5)), "rows of two tables that were appended to")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_drop(table: Table) -> None:
    first = table.append(0).snapshot_id
    uuid = table.info.table_uuid
    if table.lake.declares(Feature.TIME_TRAVEL):
        table.read(snapshot_id=first)  # whose number the next table of this name may have, too
    table.lake.storage.catalog().drop_table(table.path)
    with refused(TableNotFound, "a table that was dropped is loaded"):
        _ = table.info
    expect(table.lake.storage.catalog().list_tables(), [], "the tables of a warehouse after its only one was dropped")
    again = table.lake.create()
    assert again.info.table_uuid != uuid, "a table that is made anew has another uuid than the dropped one"
    expect(again.ids, [], "rows of a table that was made anew")
    expect(again.watermark(), None, "the watermark of a table that was made anew: it went with the dropped one")
    if table.lake.declares(Feature.TIME_TRAVEL):
        snapshot = again.append(0, ids_of(5)).snapshot_id
        found = again.read(columns=("id",), snapshot_id=snapshot)["id"].to_pylist()
        expect(sorted(found), ids_of(5), f"rows of snapshot {snapshot} of a table that was made anew")
    if table.lake.declares(Feature.INCREMENTAL_READ):
        _followed_anew(table.lake)


def _followed_anew(lake: Lake) -> None:
    """A table is dropped and made anew with another column: its changes have the columns of today."""
    for other in ("name", "note"):
        schema = pa.schema([("id", pa.int64()), (other, pa.string())])
        table = lake.create(schema, "db.followed")
        for epoch in range(2):
            table.publish_arrow([pa.record_batch({"id": [epoch], other: [f"{other} {epoch}"]})], token(epoch))
        changes, source = table.changes, table.source
        plan = changes.plan(changes.versions().earliest, changes.versions().latest)
        found = read_plan(source, plan).to_pylist()
        wanted = [{"id": epoch, other: f"{other} {epoch}"} for epoch in range(2)]
        expect(found, wanted, f"changes of a table with the columns id and {other}")
        lake.storage.catalog().drop_table(table.path)


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_add_a_column(table: Table) -> None:
    table.append(0)
    catalog = table.lake.storage.catalog()
    catalog.load_table(table.path)
    altered = table.lake.storage.catalog().alter_table(table.path, [AddColumn(EXTRA)])
    expect(altered.schema.names, [*SCHEMA.names, "extra"], "the columns after one was added")
    expect(
        altered.schema_fingerprint,
        table.info.schema_fingerprint,
        "the fingerprint that alter_table returns, and that of the table",
    )
    expect(table.read()["extra"].to_pylist(), [None] * 5, "values of an added column in rows that were there before")
    rows = batch(ids_of(1)).append_column(EXTRA, pa.array(["e"] * 5))
    table.publish_arrow([rows], token(1))
    read = table.read().sort_by("id")
    expect(read["extra"].to_pylist(), [None] * 5 + ["e"] * 5, "values of an added column in old and new rows")
    expect(read["id"].to_pylist(), ids_of(0) + ids_of(1), "rows after an append with an added column")
    now, fresh = catalog.load_table(table.path), table.info
    for what in ("schema", "snapshot_id"):
        expect(getattr(now, what), getattr(fresh, what), f"the {what} that a catalog loads after others changed it")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_adding_twice_is_the_same_as_once(table: Table) -> None:
    catalog = table.lake.storage.catalog()
    change = [AddColumn(pa.field("more", pa.float64())), AddColumn(EXTRA)]
    first = catalog.alter_table(table.path, change)
    table.append(0)
    second = catalog.alter_table(table.path, change)
    expect(second.snapshot_id, table.info.snapshot_id, "the snapshot that is told when columns are added once more")
    expect(
        first.schema_fingerprint, second.schema_fingerprint, "the fingerprint after the same columns were added twice"
    )
    expect(second.schema.names, [*SCHEMA.names, "more", "extra"], "the columns after the same columns were added twice")


@pytest.mark.needs(Feature.ADD_COLUMN)
@pytest.mark.parametrize(
    "field",
    [
        pytest.param(pa.field("name", pa.int64()), id="other-type"),
        pytest.param(pa.field("extra", pa.string(), nullable=False), id="not-null"),
        pytest.param(pa.field("NAME", pa.string()), id="another-case"),
    ],
)
def test_a_change_that_does_not_fit_is_refused(table: Table, field: pa.Field) -> None:
    with refused(IncompatibleTable, "a column that does not fit is added beside one that does"):
        table.lake.storage.catalog().alter_table(
            table.path, [AddColumn(pa.field("fine", pa.int64())), AddColumn(field)]
        )
    twice = [AddColumn(pa.field("twice", kind)) for kind in (pa.int64(), pa.string())]
    with refused(IncompatibleTable, "a column is added twice in one step, by two types"):
        table.lake.storage.catalog().alter_table(table.path, twice)
    expect(
        table.info.schema.names, SCHEMA.names, "the columns after a change was refused: all changes are made, or none"
    )


WIDE = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("key", pa.string()), pa.field("count", pa.int32(), nullable=False)]
)
CHANGES = (
    (Feature.ADD_COLUMN, AddColumn(EXTRA)),
    (Feature.WIDEN_TYPE, WidenColumn("count", pa.int64())),
    (Feature.SET_PROPERTY, SetProperty("acme.more", "new", None)),
    (Feature.RENAME_COLUMN, RenameColumn("count", "number")),
)


LAYOUTS: dict[str, list[dict[str, Any]]] = {
    "plain": [{}],
    "partitioned": [{"partition_by": (PartitionField("key"),)}],
    "keyed": [{"primary_key": ("id",)}],
    "bucketed": [{"buckets": BucketSpec(4, ("key",), function)} for function in ("fluss", "iceberg", "paimon", "hudi")],
}


def _laid_out(lake: Lake, layouts: Sequence[dict[str, Any]]) -> Table:
    """In the first of these layouts that the format knows."""
    for layout in layouts[:-1]:
        with suppress(FeatureNotSupported):
            return lake.create(WIDE, comment="of people", properties={"acme.note": "stays"}, **layout)
    return lake.create(WIDE, comment="of people", properties={"acme.note": "stays"}, **layouts[-1])


@pytest.mark.parametrize(
    "layout",
    [
        "plain",
        pytest.param("partitioned", marks=pytest.mark.needs(Feature.PARTITIONING)),
        pytest.param("bucketed", marks=pytest.mark.needs(Feature.BUCKETING)),
        pytest.param("keyed", marks=pytest.mark.needs(Feature.UPSERT)),
    ],
)
def test_a_change_leaves_the_rest_as_it_is(lake: Lake, layout: str) -> None:
    """What a table is beside what was changed: its identity, comment, properties, key, partitions and buckets. And all
    that it is, where the change is one that the format does not declare."""
    table = _laid_out(lake, LAYOUTS[layout])
    same = ("partition_by", "buckets", "primary_key", "comment")
    before = table.info
    for feature, change in CHANGES:
        if not lake.declares(feature):
            now = table.info
            with refused(FeatureNotSupported, f"a table is asked for {feature.value}, which is not declared"):
                lake.storage.catalog().alter_table(table.path, [change])
            found = table.info
            expect(found.table_uuid, now.table_uuid, f"the identity of a table that was refused {feature.value}")
            expect(found.descriptor, now.descriptor, f"the description of a table that was refused {feature.value}")
            continue
        answered = lake.storage.catalog().alter_table(table.path, [change])
        for info, who in ((answered, "who changed it"), (table.info, "who loads it")):
            what = f"of a table after {feature.value}, for {who}"
            expect(info.table_uuid, before.table_uuid, f"the identity {what}")
            for name in same:
                expect(getattr(info.descriptor, name), getattr(before.descriptor, name), f"the {name} {what}")
            nullable = [field.nullable for field in info.schema][: len(WIDE)]
            expect(nullable, [field.nullable for field in WIDE], f"which of its first columns may be null {what}")
            kept = {name: info.descriptor.properties.get(name) for name in before.descriptor.properties}
            expect(kept, dict(before.descriptor.properties), f"the properties {what}")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_watermarks_survive_a_change(table: Table) -> None:
    table.append(0)
    table.append(0, ids_of(5), pipeline="other")
    marks = {name: table.watermark(name) for name in ("p", "other")}
    table.lake.storage.catalog().alter_table(table.path, [AddColumn(EXTRA)])
    committer = table.committer()
    state = committer.open()
    for name, mark in marks.items():
        assert mark is not None, f"pipeline {name!r} has a watermark after its first epoch"
        assert state.landed(mark.commit_id), f"a commit of {name!r} is found by its id after a column was added"
    committer.close()
    expect(
        table.append(0).outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of an epoch that is run again after a column was added",
    )
    expect(table.append(1).outcome, RoundOutcome.PUBLISHED, "the outcome of the next epoch after a column was added")
    expect(
        table.append(0, ids_of(5), pipeline="other").outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of another pipeline's epoch that is run again after a column was added",
    )
    expect(len(table.ids), 15, "the number of rows after these rounds")


def test_two_warehouses_of_one_process(lake: Lake, opened: Opened, tmp_path: Path) -> None:
    """Each storage keeps to its own, also while the other one is used: a catalog, and a round that has begun."""
    storage = lake.storage
    catalog = storage.catalog()
    info = catalog.create_table(TablePath("db", "t"), TableDescriptor(SCHEMA))
    with opened(tmp_path / "another warehouse") as elsewhere:
        theirs = elsewhere.create()
        theirs.append(0, ids_of(7))
        message = write_task(storage.tiering_factory(info), [batch(ids_of(0))])
        tiering = TieringRound(storage.tiering_factory(info), token=token(0))
        expect(tiering.commit_messages([message]).rows, 5, "rows of a round beside another warehouse")
        loaded = catalog.load_table(TablePath("db", "t"))
        expect(loaded.table_uuid, info.table_uuid, "the uuid of a table beside its namesake in another warehouse")
        catalog.create_table(TablePath("db", "only_here"), TableDescriptor(SCHEMA))
        found = elsewhere.storage.catalog().list_tables()
        expect(found, [TablePath("db", "t")], "the tables of another warehouse")
        expect(theirs.ids, ids_of(7), "rows of another warehouse")
    expect(lake.table("db.t").ids, ids_of(0), "rows of a warehouse that was used beside another one")


def test_two_catalogs_that_stay_open(lake: Lake) -> None:
    """Each goes on with a table as the other one left it: made, written to, changed, dropped and made anew. Services
    hold their catalogs for months, and what one remembers another one changes."""
    first, second = lake.storage, lake.storage
    ours, theirs = first.catalog(), second.catalog()
    path, rows = TablePath("db", "t"), list[int]()

    def round_by(storage: LakeStorage, catalog: LakeCatalog, epoch: int) -> None:
        factory = storage.tiering_factory(catalog.load_table(path))
        message = write_task(factory, [pa.record_batch({"id": [epoch]})])
        TieringRound(factory, token=token(epoch)).commit_messages([message])
        rows.append(epoch)
        expect(lake.table("db.t").ids, rows, f"rows of a table after epoch {epoch}, which a storage in use wrote")

    expect((ours.list_tables(), theirs.list_tables()), ([], []), "the tables of an empty warehouse")
    with refused(TableNotFound, "a table that is not there yet is loaded"):
        theirs.load_table(path)
    uuid = ours.create_table(path, TableDescriptor(SCHEMA)).table_uuid
    what = "for a catalog that was open when another one made the table"
    expect(theirs.list_tables(), [path], f"the tables {what}")
    expect(theirs.load_table(path).table_uuid, uuid, f"the identity {what}")
    expect(theirs.create_table(path, TableDescriptor(SCHEMA)).table_uuid, uuid, f"the identity when made again, {what}")
    round_by(second, theirs, 0)
    round_by(first, ours, 1)
    columns = [*SCHEMA.names]
    if lake.declares(Feature.ADD_COLUMN):
        for catalog, name in ((ours, "more"), (theirs, "extra"), (ours, "last")):
            columns.append(name)
            altered = catalog.alter_table(path, [AddColumn(pa.field(name, pa.string()))])
            expect(altered.schema.names, columns, "the columns after two open catalogs added some in turn")
            expect(theirs.load_table(path).schema.names, columns, "the columns for the other open catalog")
        round_by(second, theirs, 2)
    if not lake.declares(Feature.DROP_TABLE):
        return
    ours.drop_table(path)
    rows.clear()
    what = "for a catalog that was open when another one dropped the table"
    expect(theirs.list_tables(), [], f"the tables {what}")
    for doing, act in (("loaded", theirs.load_table), ("dropped", theirs.drop_table)):
        with refused(TableNotFound, f"a table that another open catalog dropped is {doing}"):
            act(path)
    anew = theirs.create_table(path, TableDescriptor(SCHEMA)).table_uuid
    expect(anew == uuid, False, f"whether the table that is made anew is the dropped one, {what}")
    info = ours.load_table(path)
    what = "of a table that another open catalog made anew"
    expect((info.table_uuid, info.schema.names), (anew, SCHEMA.names), f"the identity and the columns {what}")
    round_by(first, ours, 0)
    round_by(second, theirs, 1)
    theirs.drop_table(path)
    third = ours.create_table(path, TableDescriptor(SCHEMA)).table_uuid
    expect(third in (uuid, anew), False, f"whether the table that is made once more is a dropped one, {what}")
    rows.clear()
    round_by(first, ours, 0)


@pytest.mark.needs(Feature.DROP_TABLE)
def test_dropping_what_is_no_table(lake: Lake, table: Table, unproven: Callable[[str, str], None]) -> None:
    """A folder of somebody else's beside the tables of a local warehouse."""
    if not lake.declares(Feature.DROP_TABLE):
        # Of what is no table a format that drops none may say either.
        lake.storage.catalog().drop_table(table.path)
    folder = local_folder(table.info.location)
    theirs = None if folder is None else sibling(folder, table.path.table, "notes")
    if theirs is None:
        unproven("drops of what is no table", "the table is in no local folder of its name")
        return
    theirs.mkdir()
    (theirs / "notes.txt").write_text("theirs")
    with refused(TableNotFound, "a folder that is no table is dropped"):
        lake.storage.catalog().drop_table(TablePath("db", "notes"))
    expect((theirs / "notes.txt").read_text(), "theirs", "a file in a folder that is no table, after it was dropped")
