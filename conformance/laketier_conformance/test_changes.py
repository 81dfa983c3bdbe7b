"""A table as a log: what its commits appended, version by version."""

from __future__ import annotations

import itertools
import pickle

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    ConfigError,
    Feature,
    LakeSplit,
    LaketierError,
    OffsetsExpired,
    RenameColumn,
    RowsChanged,
    SchemaChange,
    SnapshotNotFound,
    WidenColumn,
    WriteMode,
    host_time,
    pack,
    unpack,
)
from laketier_conformance.altered import LARGE, NARROW, RENAME, SMALL, WIDE, WIDEN
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.keyed import Keyed
from laketier_conformance.lake import SCHEMA, Lake, Table, batch, ids_of, read_plan, read_split, token
from laketier_conformance.seen import ids_at

EPOCHS = 4


def _appended(table: Table, start: int, end: int, **options: bool) -> pa.Table:
    with goes_well(f"what the versions {start} to {end} appended is read", but=(LaketierError,)):
        return read_plan(table.source, table.changes.plan(start, end, **options)).sort_by("id")


@pytest.mark.needs(Feature.INCREMENTAL_READ)
def test_each_range_gives_what_its_commits_appended(table: Table) -> None:
    marks = [table.latest]
    for epoch in range(EPOCHS):
        table.append(epoch, ids_of(epoch, 0), ids_of(epoch, 1))
        marks.append(table.latest)
    expect(marks, sorted(set(marks)), "the versions of commits, each of its own and in their order")
    for first, last in itertools.combinations(range(EPOCHS + 1), 2):
        expected = [i for epoch in range(first, last) for split in (0, 1) for i in ids_of(epoch, split)]
        found = _appended(table, marks[first], marks[last])
        expect(
            found, pa.Table.from_batches([batch(expected)]), "the rows that the commits between two versions appended"
        )
    epochs = {i: epoch for epoch in range(EPOCHS) for split in (0, 1) for i in ids_of(epoch, split)}
    rows = read_plan(table.source, table.changes.plan(marks[0], marks[-1]))["id"].to_pylist()
    expect(
        [epoch for epoch, _ in itertools.groupby(epochs[i] for i in rows)],
        list(range(EPOCHS)),
        "the commits that rows of a range are of, in their order",
    )
    expect(_appended(table, marks[2], marks[2]).num_rows, 0, "the number of rows of a range without a commit")


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.needs(Feature.INCREMENTAL_READ)
def test_the_bounds_are_readable(table: Table) -> None:
    begun = host_time()
    table.append(0)
    changes = table.changes
    earlier = changes.versions()
    table.append(1)
    bounds = changes.versions()
    assert bounds.latest > earlier.latest, (
        f"the versions that changes tell again after a commit: expected more than {earlier}, found {bounds}"
    )
    assert bounds.latest_at is None or begun - 60_000 < bounds.latest_at < host_time() + 60_000, (
        f"the newest version was committed, in ms since the epoch: found {bounds.latest_at}, and it was {begun} or soon"
    )
    lasting = bounds.lasting_id
    assert lasting is None or lasting == earlier.lasting_id, (
        f"the identity that a table keeps while old versions expire: expected {earlier.lasting_id}, as before, "
        f"found {lasting}"
    )
    found = read_plan(table.source, changes.plan(earlier.latest, bounds.latest))["id"].to_pylist()
    expect(sorted(found), ids_of(1), "rows of a commit that came after the changes were opened")
    assert 0 <= bounds.earliest < bounds.latest, (
        f"the bounds of the readable changes are versions, the earliest before the latest: found {bounds}"
    )
    expect(
        _appended(table, bounds.earliest, bounds.latest).num_rows,
        10,
        "the number of rows between the earliest and the latest version",
    )
    for end in (earlier.latest, bounds.latest):
        named, newest = changes.plan(earlier.latest - 1, end).snapshot_id, changes.snapshot_at(end - 1)
        assert named in (None, newest), (
            f"the snapshot that a plan of the versions before {end} names: expected {newest}, or none, found {named}"
        )
    for version in (bounds.earliest, bounds.latest):
        expect(_appended(table, version, version).num_rows, 0, f"the number of rows from version {version} to itself")
    with refused((OffsetsExpired, SnapshotNotFound, ConfigError), "a range is planned that begins with version -1"):
        table.changes.plan(-1, bounds.latest)
    for start, end in ((-1, 1), (2, 2)):
        with refused(SnapshotNotFound, f"a range to {end} versions beyond the latest is planned, from {start} beyond"):
            table.changes.plan(bounds.latest + start, bounds.latest + end)


@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.TIME_TRAVEL)
def test_each_version_has_its_snapshot(table: Table) -> None:
    """Who begins to follow a table reads the snapshot of a version first. None says that there was nothing to read, and
    a version that nobody has made yet is no other one."""
    marks = [table.latest]
    for epoch in range(3):
        table.append(epoch)
        marks.append(table.latest)
    changes = table.changes
    if marks[0]:
        expect(ids_at(table, changes, marks[0] - 1), [], "rows of the version before the first rows")
    for epochs, end in enumerate(marks[1:], start=1):
        wanted = [i for epoch in range(epochs) for i in ids_of(epoch)]
        expect(ids_at(table, changes, end - 1), wanted, f"rows of the snapshot of the version after {epochs} epochs")
    for version in (marks[-1], marks[-1] + 100):
        with refused(SnapshotNotFound, f"the snapshot of version {version} is read, and the newest is {marks[-1] - 1}"):
            ids_at(table, changes, version)
        with refused(SnapshotNotFound, f"the snapshot of version {version} is named, where it has not come to yet"):
            changes.snapshot_at(version)
    with refused(SnapshotNotFound, "the snapshot of version -1 is named"):
        changes.snapshot_at(-1)


@pytest.mark.needs(Feature.INCREMENTAL_READ)
def test_an_epoch_without_rows_appends_nothing(table: Table) -> None:
    table.append(0)
    start = table.latest
    table.append(1, [])
    assert table.latest > start, "an epoch without rows is a version of its own"
    expect(_appended(table, start, table.latest).num_rows, 0, "the number of rows that an epoch without rows appended")


@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.TIME_TRAVEL)
def test_a_snapshot_and_what_came_after_it_are_the_table(table: Table) -> None:
    table.append(0)
    table.append(1)
    middle = table.latest
    table.append(2)
    snapshot = table.read(snapshot_id=table.changes.snapshot_at(middle - 1))
    expect(sorted(snapshot["id"].to_pylist()), ids_of(0) + ids_of(1), "rows of the snapshot of a version")
    whole = pa.concat_tables([snapshot, _appended(table, middle, table.latest)])
    expect(
        whole.sort_by("id"),
        table.read().sort_by("id"),
        "rows of a snapshot together with those that were appended after it",
    )


@pytest.mark.needs(Feature.INCREMENTAL_READ)
def test_splits_travel_and_are_read_by_some_columns(table: Table) -> None:
    start = table.latest
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    source = table.source
    changes = pickle.loads(pickle.dumps(table.changes))  # noqa: S301 - as Spark does
    plan = changes.plan(start, table.latest)
    for names in (["value", "id"], []):
        schema = pa.schema([plan.schema.field(name) for name in names])
        found = []
        for index, split in enumerate(plan.splits):
            expect(split.index, index, "the index of a split of changes")
            travelled: LakeSplit = unpack(source.split_serializer, pack(source.split_serializer, split))
            batches = list(read_split(table.source, travelled, schema))
            assert all(rows.schema.names == names for rows in batches), (
                "columns of a batch that was read by some columns"
            )
            assert split.rows in (None, sum(rows.num_rows for rows in batches)), (
                "the rows that a split of changes tells, beside those that it has"
            )
            found += batches
        expect(sum(rows.num_rows for rows in found), 10, "the number of rows of changes that were read by some columns")
    expect(plan.remaining, (), "the filters that remain of a plan of changes")


@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.ADD_COLUMN)
def test_rows_have_the_columns_that_the_table_has_now(table: Table) -> None:
    start = table.latest
    table.append(0)
    end = table.latest
    opened = table.changes
    expect(opened.plan(start, end).schema.names, SCHEMA.names, "the columns of changes before one was added")
    storage = table.lake.storage
    storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int64()))])
    added = table.latest
    rows = batch(ids_of(1)).append_column("more", pa.array(ids_of(1), pa.int64()))
    table.publish_arrow([rows], token(1))
    found = read_plan(table.source, opened.plan(added, table.latest)).sort_by("id")
    expect(found, pa.Table.from_batches([rows]), "rows of an added column, in changes that were opened before it")
    older = _appended(table, start, end)
    expect(older.column_names, [*SCHEMA.names, "more"], "the columns of older changes after one was added")
    found = _appended(table, start, table.latest)
    expect(found.column_names, [*SCHEMA.names, "more"], "the columns of changes after one was added")
    expect(found["id"].to_pylist(), ids_of(0) + ids_of(1), "rows of changes from before and after a column was added")
    expect(
        found["more"].to_pylist(),
        [None] * 5 + ids_of(1),
        "values of an added column in changes from before and after it",
    )
    expect(found, table.read().sort_by("id"), "rows of changes from before and after a column was added")


@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.WIDEN_TYPE)
def test_rows_have_the_types_that_the_table_has_now(lake: Lake) -> None:
    table = lake.create(NARROW, "db.numbers")
    start = table.latest
    table.publish_arrow([pa.RecordBatch.from_pydict(SMALL, NARROW)], token(0))
    end = table.latest
    lake.storage.catalog().alter_table(table.path, WIDEN)
    table.publish_arrow([pa.RecordBatch.from_pydict(LARGE, table.info.schema)], token(1))
    older = _appended(table, start, end)
    expect(older.to_pydict(), SMALL, "values of changes from before columns were widened")
    found = _appended(table, start, table.latest)
    expect(found, table.read().sort_by("id"), "rows of changes from before and after columns were widened")
    expect(found.to_pydict(), {name: SMALL[name] + LARGE[name] for name in SMALL}, "values of such changes")


@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.RENAME_COLUMN)
def test_rows_have_the_names_that_the_table_has_now(table: Table) -> None:
    start = table.latest
    table.append(0)
    end = table.latest
    table.lake.storage.catalog().alter_table(table.path, RENAME)
    names = ["title" if name == "name" else name for name in SCHEMA.names]
    table.publish_arrow([batch(ids_of(1)).rename_columns(names)], token(1))
    old, new = (pa.Table.from_batches([batch(ids)]).rename_columns(names) for ids in (ids_of(0), ids_of(1)))
    expect(_appended(table, start, end), old, "rows of changes from before a column was renamed")
    both = pa.concat_tables([old, new])
    expect(_appended(table, start, table.latest), both, "rows of changes from before and after a column was renamed")


@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.RENAME_COLUMN, Feature.WIDEN_TYPE)
@pytest.mark.parametrize("first", ["renamed", "widened"])
def test_rows_from_before_a_column_was_renamed_and_widened(lake: Lake, first: str) -> None:
    """Both leave it the same column. A format that finds it again by its name, or by its type, finds it no more: it has
    the values, or refuses the range, and gives no nulls in their place."""
    table = lake.create(NARROW, "db.numbers")
    start = table.latest
    table.publish_arrow([pa.RecordBatch.from_pydict(SMALL, NARROW)], token(0))
    end = table.latest
    steps: list[SchemaChange] = [RenameColumn("count", "total"), WidenColumn("total", WIDE["count"])]
    if first == "widened":
        steps = [WidenColumn("count", WIDE["count"]), RenameColumn("count", "total")]
    for step in steps:
        lake.storage.catalog().alter_table(table.path, [step])
    doing = "changes from before a column was renamed and widened"
    with goes_well(f"{doing} are planned", but=(RowsChanged, OffsetsExpired)):
        try:
            plan = table.changes.plan(start, end)
        except (RowsChanged, OffsetsExpired):
            return
        found = read_plan(table.source, plan).sort_by("id")
    expect(found["total"].to_pylist(), SMALL["count"], f"values of it in {doing}")
    expect(found, table.read().sort_by("id"), f"rows of {doing}")


@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.OVERWRITE)
def test_a_commit_that_replaced_rows_is_refused_or_passed_over(table: Table) -> None:
    first = table.latest
    table.append(0)
    start = table.latest
    table.append(1)
    replaced = table.latest
    table.round(None, [ids_of(2)], mode=WriteMode.OVERWRITE)
    after = table.latest
    table.append(2, ids_of(3))
    with refused(RowsChanged, "changes are planned over a commit that replaced rows", match=r"read\.skip-changes"):
        table.changes.plan(start, table.latest)
    with refused(RowsChanged, "changes are planned over commits that appended rows and one that replaced all of them"):
        table.changes.plan(first, table.latest)
    expect(
        _appended(table, start, replaced)["id"].to_pylist(),
        ids_of(1),
        "rows that were appended before a commit that replaced rows",
    )
    expect(
        _appended(table, after, table.latest)["id"].to_pylist(),
        ids_of(3),
        "rows that were appended after a commit that replaced rows",
    )
    expect(
        _appended(table, start, table.latest, skip_changes=True)["id"].to_pylist(),
        ids_of(1) + ids_of(3),
        "rows that were appended around a commit that replaced rows, which is passed over",
    )


@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.OVERWRITE)
def test_the_first_rows_of_a_table_are_replaced_at_once(table: Table) -> None:
    """It was empty not long ago, and is not any more."""
    start = table.latest
    table.append(0)
    table.round(None, [ids_of(1)], mode=WriteMode.OVERWRITE)
    with refused(RowsChanged, "changes are planned over an overwrite right after the first rows of the table"):
        table.changes.plan(start, table.latest)
    expect(
        _appended(table, start, table.latest, skip_changes=True)["id"].to_pylist(),
        ids_of(0),
        "rows that were appended before an overwrite right after them, which is passed over",
    )


@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.OVERWRITE)
def test_rows_that_are_taken_away_for_nothing(table: Table) -> None:
    """An overwrite without a row leaves an empty table: whoever takes it for a commit that appended nothing would never
    hear that the rows are gone."""
    table.append(0)
    start = table.latest
    table.round(token(1), [], mode=WriteMode.OVERWRITE)
    end = table.latest
    with refused(RowsChanged, "changes are planned over an overwrite without rows"):
        table.changes.plan(start, end)
    expect(
        _appended(table, start, end, skip_changes=True).num_rows,
        0,
        "the number of rows of an overwrite without rows, which is passed over",
    )


@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.UPSERT)
def test_a_commit_that_replaced_files_by_key_is_refused(lake: Lake) -> None:
    keyed = Keyed.of(lake.create(primary_key=("id",)))
    keyed.round(0, keyed.staged({1: "a", 2: "b"}), keyed.staged({3: "c"}))
    table = keyed.table
    marks = [table.latest]
    keyed.round(1, keyed.staged({1: "A", 2: "b", 4: "d"}, keyed.files(1)))
    marks.append(table.latest)
    keyed.round(2, keyed.staged({}, keyed.files(3)))
    marks.append(table.latest)
    for start, end in itertools.pairwise(marks):
        with refused(RowsChanged, "changes are planned over a commit that replaced files by key"):
            table.changes.plan(start, end)
        expect(
            _appended(table, start, end, skip_changes=True).num_rows,
            0,
            "the number of rows of a commit that replaced files by key, which is passed over",
        )


@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.DROP_TABLE)
def test_a_table_that_was_made_anew_has_its_own_changes(table: Table) -> None:
    """Versions of them may have the same numbers, and be read in the same process. The last one has other columns."""
    other = pa.schema([("id", pa.int64()), ("more", pa.string())])
    for number in range(2):
        start = table.latest
        table.append(0, ids_of(number))
        found = _appended(table, start, table.latest)
        expect(found["id"].to_pylist(), ids_of(number), f"rows that table {number} of this name appended")
        table.lake.storage.catalog().drop_table(table.path)
        table = table.lake.create() if not number else table.lake.create(other)
    start = table.latest
    table.publish_arrow([pa.record_batch([pa.array([7], pa.int64()), pa.array(["new"])], schema=other)], token(0))
    found = _appended(table, start, table.latest)
    expect(
        found.schema.names, other.names, "the columns of what was appended to a table that was made anew with others"
    )
    expect(found.to_pylist(), [{"id": 7, "more": "new"}], "rows that were appended to a table with other columns")
