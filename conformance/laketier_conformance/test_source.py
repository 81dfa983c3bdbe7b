"""Reading: snapshots, columns, filters with what remains of them, limits."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from laketier.spi import (
    AddColumn,
    And,
    ConfigError,
    Feature,
    Leaf,
    Not,
    Op,
    Or,
    Predicate,
    RenameColumn,
    ScanRequest,
    SchemaChange,
    SnapshotNotFound,
    WidenColumn,
    to_arrow,
)
from laketier_conformance import apart
from laketier_conformance.expect import expect, refused, told
from laketier_conformance.harness import Harness
from laketier_conformance.lake import (
    SCHEMA,
    Lake,
    Opened,
    SharedTable,
    Table,
    batch,
    finished,
    ids_of,
    name_of,
    read_plan,
    read_split,
    tick,
    token,
)
from laketier_conformance.oracle import rows_for


@pytest.fixture(scope="module")
def read_only(opened: Opened, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A warehouse for tables that several tests read, and none changes."""
    with opened(tmp_path_factory.mktemp("read-only")) as lake:
        yield lake


@pytest.fixture(scope="module")
def filled(read_only: Lake) -> Table:
    return _fill(read_only, SharedTable)


def _fill(lake: Lake, kind: type[Table] = Table) -> Table:
    """Three epochs, so several splits, with nulls."""
    table = lake.create()
    for epoch in range(3):
        table.append(epoch, ids_of(epoch, 0, 20), ids_of(epoch, 1, 20))
    return kind(table.lake, table.path)


YEAR_10000 = 253_402_300_800_000
ALL = sorted(i for epoch in range(3) for split in (0, 1) for i in ids_of(epoch, split, 20))


def test_all_rows_and_columns(filled: Table) -> None:
    expect(filled.read().sort_by("id"), pa.Table.from_batches([batch(ALL)]), "rows of a plain scan")


def test_an_empty_table(table: Table) -> None:
    source = table.source
    plan = source.plan(ScanRequest())
    expect(plan.splits, (), "the splits of an empty table")
    expect(plan.schema.names, SCHEMA.names, "the columns of a plan of an empty table")
    table.append(0)
    again = source.plan(ScanRequest())
    found = [row for split in again.splits for rows in read_split(source, split, again.schema) for row in rows["id"]]
    expect(sorted(row.as_py() for row in found), ids_of(0), "rows that came since a source was made, planned by it")


def test_the_plan_tells_its_schema(filled: Table) -> None:
    plan = filled.source.plan(ScanRequest())
    info = filled.info
    expect(plan.schema.names, info.schema.names, "the columns of a plan")
    expect([field.type for field in plan.schema], [field.type for field in info.schema], "the types of a plan")
    expect(plan.snapshot_id, info.snapshot_id, "the snapshot of a plan")


@pytest.mark.parametrize("columns", [("value", "id"), ("name",), ("id", "name", "value"), ("value", "name", "id")])
def test_columns_come_in_the_order_asked_for(filled: Table, columns: tuple[str, ...]) -> None:
    read = filled.read(columns=columns)
    expect(tuple(read.column_names), columns, "the columns of a scan, in the order asked for")
    expected = pa.Table.from_batches([batch(ALL)]).select(columns)
    order = [(name, "ascending") for name in columns]
    expect(read.sort_by(order), expected.sort_by(order), f"rows of a scan of the columns {columns}")


def test_no_columns_still_count(filled: Table) -> None:
    source = filled.source
    plan = source.plan(ScanRequest(columns=()))
    expect(plan.schema.names, [], "the columns of a plan without any")
    expect(
        sum(rows.num_rows for split in plan.splits for rows in read_split(source, split, plan.schema)),
        len(ALL),
        "the number of rows of a scan without columns",
    )


def test_rows_of_splits_are_right_where_they_are_told(filled: Table) -> None:
    source = filled.source
    plan = source.plan(ScanRequest())
    expect([split.index for split in plan.splits], list(range(len(plan.splits))), "the indexes of the splits")
    for split in plan.splits:
        count = sum(rows.num_rows for rows in read_split(source, split, plan.schema))
        assert split.rows is None or split.rows == count, (
            f"the rows that a split tells, {split.rows}, are those that it has, {count}"
        )


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(ScanRequest(columns=("id", "nam")), id="column"),
        pytest.param(ScanRequest(filters=(Leaf("nam", Op.EQ, "x"),)), id="filter"),
    ],
)
def test_an_unknown_column_is_refused(filled: Table, request_: ScanRequest) -> None:
    with refused(ConfigError, "a plan is made with a column that is not there", match="nam"):
        filled.source.plan(request_)


FILTERS: dict[str, tuple[Predicate, ...]] = {
    "eq": (Leaf("id", Op.EQ, 10_003),),
    "eq-nothing": (Leaf("id", Op.EQ, -1),),
    "ne": (Leaf("name", Op.NE, "row 5"),),
    "lt": (Leaf("id", Op.LT, 1_004),),
    "le-float": (Leaf("value", Op.LE, 1.25),),
    "gt": (Leaf("id", Op.GT, 20_010),),
    "ge-text": (Leaf("name", Op.GE, "row 9"),),
    "in": (Leaf("id", Op.IN, (3, 10_005, 77)),),
    "in-with-null": (Leaf("name", Op.IN, ("row 5", None)),),
    "in-nothing": (Leaf("id", Op.IN, ()),),
    "not-in": (Not(Leaf("name", Op.IN, ("row 5", "row 6"))),),
    "is-null": (Leaf("name", Op.IS_NULL),),
    "not-null": (Leaf("value", Op.NOT_NULL),),
    "starts-with": (Leaf("name", Op.STARTS_WITH, "row 100"),),
    "starts-with-wildcards": (Leaf("name", Op.STARTS_WITH, "row_%"),),
    "quoted": (Leaf("name", Op.EQ, 'it\'s a "row"'),),
    "not": (Not(Leaf("value", Op.GT, 1.0)),),
    "not-null-of-not": (Not(Leaf("name", Op.IS_NULL)),),
    "and": (And((Leaf("id", Op.GE, 10_000), Leaf("id", Op.LT, 10_005))),),
    "or": (Or((Leaf("id", Op.EQ, 5), Leaf("name", Op.IS_NULL))),),
    "and-first": (And((Leaf("id", Op.GT, 1_000), Leaf("name", Op.IS_NULL))),),
    "and-last": (And((Leaf("name", Op.IS_NULL), Leaf("id", Op.GT, 1_000))),),
    "or-first": (Or((Leaf("id", Op.GT, 10_000), Leaf("name", Op.IS_NULL))),),
    "or-last": (Or((Leaf("name", Op.IS_NULL), Leaf("id", Op.GT, 10_000))),),
    "and-of-or": (And((Or((Leaf("id", Op.EQ, 5), Leaf("name", Op.IS_NULL))), Leaf("id", Op.GE, 10_000))),),
    "not-or": (Not(Or((Leaf("id", Op.LT, 10_000), Leaf("name", Op.EQ, "row 10005")))),),
    "conjunction": (Leaf("id", Op.GE, 10_000), Leaf("value", Op.IS_NULL)),
    "deep": (Not(And((Or((Leaf("id", Op.LT, 10_000), Leaf("name", Op.IS_NULL))), Leaf("value", Op.GT, 0.5)))),),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_loses_no_row_and_adds_none(filled: Table, name: str) -> None:
    """Whatever the source takes of it: with what remains applied, exactly the rows for which it is true."""
    filters = FILTERS[name]
    expected = pa.Table.from_batches([batch(ALL)])
    for predicate in filters:
        expected = expected.filter(to_arrow(predicate, expected.schema))
    expect(filled.read(filters=filters).sort_by("id"), expected, f"rows of the filter {name!r}")


NAN, INFINITY = float("nan"), float("inf")
FLOATS: list[list[float | None]] = [
    [NAN, 1.0],
    [NAN, NAN],
    [-0.0],
    [0.0],
    [None, 2.0],
    [None, None],
    [INFINITY, -INFINITY],
    [INFINITY, 1.0, -INFINITY],
]


@pytest.fixture(scope="module")
def floats(read_only: Lake) -> Table:
    """A file for each of `FLOATS`."""
    schema = pa.schema([("f", pa.float64())])
    table = read_only.create(schema, "db.floats")
    for epoch, values in enumerate(FLOATS):
        table.publish_arrow([pa.record_batch([pa.array(values, pa.float64())], schema=schema)], token(epoch))
    return SharedTable(table.lake, table.path)


@pytest.mark.parametrize(
    "predicate",
    [
        Leaf("f", Op.LT, 1.0),
        Leaf("f", Op.GE, 0.0),
        Leaf("f", Op.EQ, 0.0),
        Leaf("f", Op.NE, 1.0),
        Leaf("f", Op.IS_NULL),
        Leaf("f", Op.NOT_NULL),
        Not(Leaf("f", Op.LT, 1.0)),
        # Of NaN each comparison but != is false, so its negation is true: `not f > 0.5` is not `f <= 0.5`.
        Not(Leaf("f", Op.LT, 1.5)),
        Not(Leaf("f", Op.GT, 0.5)),
        Not(And((Leaf("f", Op.GT, 0.5), Leaf("f", Op.LE, 1.5)))),
        Leaf("f", Op.IN, (float("inf"), 2.0)),
        Leaf("f", Op.IN, (0.0, 5.0)),
        Leaf("f", Op.GT, 1e300),
        Leaf("f", Op.LT, -1e300),
    ],
    ids=str,
)
def test_filters_on_nan_infinity_and_zeros(floats: Table, predicate: Predicate) -> None:
    """Statistics leave NaN out, and -0.0 equals 0.0: skipping by them must not lose rows."""
    everything = pa.table({"f": pa.array([value for values in FLOATS for value in values], pa.float64())})
    expected = sorted(map(repr, rows_for(predicate, everything)["f"].to_pylist()))
    expect(
        sorted(map(repr, floats.read(filters=(predicate,))["f"].to_pylist())),
        expected,
        f"rows of {predicate} on NaN, infinity and zeros",
    )


@pytest.mark.shows(Feature.FILTER_PUSHDOWN)
def test_what_remains_is_of_what_was_asked(filled: Table) -> None:
    """Without FILTER_PUSHDOWN everything remains. With it, at least something is skipped or taken somewhere."""
    asked = (Leaf("id", Op.GE, 20_000), Leaf("name", Op.NOT_NULL))
    source = filled.source
    plan, whole = source.plan(ScanRequest(filters=asked)), source.plan(ScanRequest())
    assert set(map(str, plan.remaining)) <= set(map(str, asked)), (
        f"what remains of filters is of what was asked: found {plan.remaining}"
    )
    if not filled.lake.declares(Feature.FILTER_PUSHDOWN):
        expect(plan.remaining, asked, "the filters that remain where FILTER_PUSHDOWN is not declared")
        expect(len(plan.splits), len(whole.splits), "the number of splits where FILTER_PUSHDOWN is not declared")
    else:
        rows = read_plan(source, plan).num_rows
        assert rows < len(ALL), "FILTER_PUSHDOWN is declared, and nothing was skipped"


@pytest.mark.parametrize("limit", [0, 1, 7, 20, 1000, 2**31, 2**62])
def test_a_limit(filled: Table, limit: int) -> None:
    source = filled.source
    plan = source.plan(ScanRequest(limit=limit))
    rows = read_plan(source, plan)
    expect(
        finished(rows, plan, limit).num_rows,
        min(limit, len(ALL)),
        f"the number of rows of a scan with the limit {limit}",
    )
    expect(
        len(set(rows["id"].to_pylist())),
        rows.num_rows,
        f"the number of different rows of a scan with the limit {limit}",
    )
    if any(split.limit is not None for split in plan.splits):
        assert filled.lake.declares(Feature.LIMIT_PUSHDOWN), "a split has a limit, so LIMIT_PUSHDOWN is declared"


def test_a_limit_counts_after_the_filters(filled: Table) -> None:
    filters = (Leaf("id", Op.GE, 20_000),)
    read = filled.read(filters=filters, limit=30)
    expect(read.num_rows, 30, "the number of rows of a scan with a filter and a limit")
    assert min(read["id"].to_pylist()) >= 20_000, "rows of a scan with a filter and a limit pass the filter"
    last = "row " + str(max(i for i in ALL if name_of(i) is not None))
    late: list[tuple[Predicate, ...]] = [
        (Leaf("id", Op.GT, 21_015),),
        (Leaf("value", Op.GT, 21_015 / 4),),  # sources leave floats to the reader
        (Leaf("id", Op.GT, 20_000), Leaf("value", Op.GT, 21_015 / 4)),
        (Leaf("id", Op.GE, 0), Leaf("value", Op.GT, 21_015 / 4)),  # each row passes the first
        (Or((Leaf("value", Op.GT, 21_015 / 4), Leaf("name", Op.EQ, last))),),
    ]
    for predicates in late:
        for limit in (1, 3):
            expect(
                filled.read(filters=predicates, limit=limit).num_rows,
                limit,
                f"the number of rows of a scan with the limit {limit}, and a filter that only the last rows of a split "
                f"pass, {' and '.join(map(str, predicates))}",
            )


def test_filters_on_columns_that_are_not_read(filled: Table) -> None:
    """A filter that the plan took holds for all rows that are read, whichever columns they have."""
    source = filled.source
    for name in ("eq", "gt", "conjunction", "not-in", "is-null", "le-float"):
        expected = pa.Table.from_batches([batch(ALL)])
        for predicate in FILTERS[name]:
            expected = expected.filter(to_arrow(predicate, expected.schema))
        for asked, columns in ((("value",), ("value",)), ((), ()), (None, ("value",)), (None, ())):
            plan = source.plan(ScanRequest(columns=asked, filters=FILTERS[name]))
            if asked is not None:
                expect(tuple(plan.schema.names), asked, f"the columns of a plan with the filter {name!r}")
            if not plan.remaining:
                schema = pa.schema([plan.schema.field(column) for column in columns])
                rows = sum(rows.num_rows for split in plan.splits for rows in read_split(source, split, schema))
                sentence = f"the number of rows of the filter {name!r}, which the plan took, read by columns {columns}"
                expect(rows, expected.num_rows, sentence)


@pytest.mark.shows(Feature.LIMIT_PUSHDOWN)
def test_a_limit_plans_fewer_splits_where_declared(filled: Table) -> None:
    if filled.lake.declares(Feature.LIMIT_PUSHDOWN):
        source = filled.source
        few, all_ = source.plan(ScanRequest(limit=1)), source.plan(ScanRequest())
        assert len(few.splits) < len(all_.splits), (
            f"a limit of one row plans fewer splits than a whole scan: found {len(few.splits)} of {len(all_.splits)}"
        )


@pytest.mark.needs(Feature.TIME_TRAVEL)
def test_time_travel(table: Table) -> None:
    snapshots = [table.append(epoch).snapshot_id for epoch in range(3)]
    for epoch, snapshot in enumerate(snapshots):
        ids = sorted(table.read(snapshot_id=snapshot)["id"].to_pylist())
        expect(ids, [i for e in range(epoch + 1) for i in ids_of(e)], f"rows of the snapshot of epoch {epoch}")
        expect(
            table.source.plan(ScanRequest(snapshot_id=snapshot)).snapshot_id,
            snapshot,
            "the snapshot of a plan that names one",
        )


@pytest.mark.needs(Feature.TIME_TRAVEL)
def test_an_unknown_snapshot_is_refused(table: Table) -> None:
    newest = table.append(0).snapshot_id or 0
    for unknown in (987_654_321, newest + 1, -1, 2**63 - 1, 2**63, -(2**63) - 1):
        with refused(SnapshotNotFound, f"snapshot {unknown} is planned, which is not there"):
            table.source.plan(ScanRequest(snapshot_id=unknown))


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.needs(Feature.TIME_TRAVEL_BY_TIMESTAMP)
def test_time_travel_by_timestamp(table: Table) -> None:
    first = table.append(0).snapshot_id
    between = tick()
    newest = table.append(1).snapshot_id
    later = tick()
    for moment, snapshot in ((between, first), (later, newest)):
        planned = table.source.plan(ScanRequest(as_of=moment)).snapshot_id
        expect(planned, snapshot, "the snapshot that a plan of a moment tells, from which somebody may read on")
    expect(sorted(table.read(as_of=between)["id"].to_pylist()), ids_of(0), "rows of the moment between two epochs")
    expect(
        sorted(table.read(as_of=later)["id"].to_pylist()), ids_of(0) + ids_of(1), "rows of the moment after two epochs"
    )
    for moment, what in ((YEAR_10000, "in the year 10000, beyond Python's dates"), (2**62, "beyond all calendars")):
        try:
            found = sorted(table.read(as_of=moment)["id"].to_pylist())
        except Exception as error:  # noqa: BLE001 - reported
            pytest.fail(f"a moment {what} is read, by which all was committed: expected all rows, found {told(error)}")
        expect(found, ids_of(0) + ids_of(1), f"rows of a moment {what}, by which all was committed")


@pytest.mark.needs(Feature.TIME_TRAVEL_BY_TIMESTAMP)
def test_a_moment_before_the_table_is_refused(table: Table) -> None:
    table.append(0)
    for moment in (1_000, 0, -1, -(2**62)):
        with refused(SnapshotNotFound, f"the moment {moment} is planned, at which there was no table"):
            table.source.plan(ScanRequest(as_of=moment))


@pytest.mark.shows(Feature.PLAIN_PARQUET)
def test_wide_rows_are_plain_parquet_too(lake: Lake) -> None:
    """Files that others read, however many columns they have; where small files are written again, one of 16 MB."""
    if not lake.declares(Feature.PLAIN_PARQUET):
        return

    def are_named(name: str, rows: int) -> bool:
        columns = {f"c{number}": pc.random(rows, initializer=number) for number in range(33)}
        data = pa.RecordBatch.from_pydict(columns)
        table = lake.create(data.schema, name)
        table.publish_arrow([data])
        return all(split.plain_parquet for split in table.source.plan(ScanRequest()).splits)

    assert are_named("db.small", 5) or are_named("db.large", 2**16), (
        "each split of a table of many columns names a plain Parquet file, as PLAIN_PARQUET is declared"
    )


STEPS: dict[str, tuple[Feature, SchemaChange]] = {
    "added": (Feature.ADD_COLUMN, AddColumn(pa.field("m", pa.int64()))),
    "widened": (Feature.WIDEN_TYPE, WidenColumn("n", pa.int64())),
    "renamed": (Feature.RENAME_COLUMN, RenameColumn("n", "m")),
}


@pytest.mark.shows(Feature.PLAIN_PARQUET)
@pytest.mark.parametrize("change", STEPS)
def test_plain_parquet_of_before_a_change(lake: Lake, harness: Harness, change: str) -> None:
    """Another engine reads it with the table's columns of now: in an older file one is missing, narrower, or called by
    another name. Nobody else may know that any more, where others ended the snapshots of before."""
    needed, step = STEPS[change]
    if not lake.declares(Feature.PLAIN_PARQUET, needed):
        return
    schema = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("r", pa.float64())])
    table = lake.create(schema)
    for rows in (5, 2**21):  # where small files are written again, one of 16 MB
        columns = [pa.array(range(rows)), pa.nulls(rows, pa.int32()), pc.random(rows, initializer=0)]
        table.publish_arrow([pa.record_batch(columns, schema=schema)])
        if any(split.plain_parquet for split in table.source.plan(ScanRequest()).splits):
            break
    lake.storage.catalog().alter_table(table.path, [step])
    _has_the_columns_of_now(table, f"after a column was {change}")
    if harness.expire is not None:
        table.append(0, [])
        harness.expire(lake.storage, table.info)
        _has_the_columns_of_now(table, f"after a column was {change}, and others expired the snapshots of before")


def _has_the_columns_of_now(table: Table, when: str) -> None:
    plan = table.source.plan(ScanRequest())
    for split in plan.splits:
        if split.plain_parquet is not None:
            content = apart.read(split.plain_parquet.removeprefix("file://"))
            there = pq.ParquetFile(pa.BufferReader(content)).schema_arrow
            found = {field.name: str(field.type) for field in there}
            expected = {field.name: str(field.type) for field in plan.schema}
            expect(found, expected, f"columns of the plain Parquet file of a split, {when}")


CUTS = {
    "": ScanRequest(),
    ", which a limit cut": ScanRequest(limit=7),
    ", which a filter cut": ScanRequest(filters=(Leaf("id", Op.GT, 21_015),)),
}


@pytest.mark.shows(Feature.PLAIN_PARQUET)
def test_plain_parquet_holds_exactly_the_split(lake: Lake) -> None:
    """Another engine reads the file by itself, so all of it must be the split."""
    table = _fill(lake)
    source = table.source
    plan = source.plan(ScanRequest())
    declared = lake.declares(Feature.PLAIN_PARQUET)
    assert declared or not any(split.plain_parquet for split in plan.splits), (
        "no split names a plain Parquet file, as PLAIN_PARQUET is not declared"
    )
    if declared and not all(split.plain_parquet for split in plan.splits):
        # A format that writes small files again in later commits keeps to itself where they are.
        table.publish_arrow([_large()])
        source = table.source
        assert any(split.plain_parquet for split in source.plan(ScanRequest()).splits), (
            "the split of a file of 16 MB names a plain Parquet file, as PLAIN_PARQUET is declared"
        )
    for how, request in CUTS.items():
        plan = source.plan(request)
        for split in plan.splits:
            if split.plain_parquet is not None:
                content = apart.read(split.plain_parquet.removeprefix("file://"))
                whole = pq.ParquetFile(pa.BufferReader(content)).read()
                through = pa.Table.from_batches(list(read_split(source, split, plan.schema)), schema=plan.schema)
                assert set(whole.column_names) >= set(through.column_names), (
                    "the plain Parquet file has all columns of its split"
                )
                expect(
                    whole.select(through.column_names).cast(through.schema),
                    through,
                    f"rows of a plain Parquet file, as its split has them{how}",
                )


def _large() -> pa.RecordBatch:
    """16 MB that no codec makes smaller."""
    rows = 2**21
    return pa.record_batch(
        [pa.array(range(10**6, 10**6 + rows)), pa.nulls(rows, pa.string()), pc.random(rows, initializer=1)],
        schema=SCHEMA,
    )
