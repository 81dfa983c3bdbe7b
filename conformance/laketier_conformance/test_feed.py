"""A table as a log: all that its commits did to rows, in tables that keep a feed of it."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from laketier.spi import (
    CHANGE_TYPE,
    AddColumn,
    ConfigError,
    Feature,
    IncompatibleTable,
    OffsetsExpired,
    SnapshotNotFound,
    WidenColumn,
    WriteMode,
    pack,
    unpack,
)
from laketier_conformance import foreign
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.harness import Harness
from laketier_conformance.keyed import Keyed
from laketier_conformance.lake import Lake, Table, batch, ids_of, read_plan, read_split, token
from laketier_conformance.short_lives import one_of_each

Unproven = Callable[[str, str], None]
pytestmark = pytest.mark.needs(Feature.CHANGE_FEED)


def _keep_feed(table: Table, harness: Harness) -> None:
    """Where tables have to be told. A format without feeds refuses here."""
    if harness.keep_feed is not None:
        harness.keep_feed(table.lake.storage, table.info)
    key = " with a primary key" if table.info.descriptor.primary_key else ""
    with goes_well(f"the feed of a table{key} is asked for, which keeps one by itself or by the harness's keep_feed"):
        assert table.feed is not None, "a table that keeps a feed has one"


def _changes(table: Table, start: int, end: int) -> pa.Table:
    return read_plan(table.source, table.feed.plan(start, end))


def _applied(changes: pa.Table, rows: pa.Table) -> Counter[tuple[object, ...]]:
    """``rows`` after ``changes``, in their order. Each row that goes was there."""
    found = Counter(tuple(row.values()) for row in rows.to_pylist())
    for change in changes.to_pylist():
        kind, row = change.pop(CHANGE_TYPE), tuple(change.values())
        assert kind in ("+I", "+U", "-D"), f"a change is +I, +U or -D: found {kind!r}"
        if kind == "-D":
            assert found[row], f"{row} is said to have gone, and was not there"
            found[row] -= 1
        else:
            found[row] += 1
    return +found


def _rows(table: Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in table.read().to_pylist())


def test_an_append_is_told_as_rows_that_came(table: Table, harness: Harness) -> None:
    table.append(0)
    _keep_feed(table, harness)
    start = table.latest
    table.append(1, ids_of(1, 0), ids_of(1, 1))
    found = _changes(table, start, table.latest)
    expect(found.column_names, [*table.info.schema.names, CHANGE_TYPE], "the columns of a feed")
    expect(found.schema.field(CHANGE_TYPE).type, pa.string(), "the type of the change types")
    expect(sorted(found["id"].to_pylist()), ids_of(1, 0) + ids_of(1, 1), "rows that a feed tells of an append")
    expect(set(found[CHANGE_TYPE].to_pylist()), {"+I"}, "the change types of an append")


def test_changes_make_the_table_of_its_snapshot(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    """Version by version: appends, replaced rows, rows that went and rows that others changed, where the format can do
    these."""
    _make_the_table(lake, harness, "db.t", {})
    if harness.update_rows is None:
        unproven("a feed of rows that others update", "the format's harness has no update_rows")


def test_changes_make_the_table_under_each_property(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    """One may choose whether files are written anew or rows are marked in them. Rows as they were go all the same."""
    _keep_feed(lake.create(), harness)
    if not harness.table_properties:
        unproven("feeds under properties of tables", "the format's harness has no table_properties")
    for number, properties in enumerate(one_of_each(harness.table_properties)):
        _make_the_table(lake, harness, f"db.under_{number}", properties)


def _make_the_table(lake: Lake, harness: Harness, name: str, properties: Mapping[str, str]) -> None:
    """The changes of a new table with these properties, from its first commit to each of the others, applied."""
    key = ("id",) if lake.declares(Feature.UPSERT) else ()
    keyed = Keyed.of(lake.create(name=name, primary_key=key, properties=properties))
    table = keyed.table
    under = "".join(f" with {each} = {value!r}" for each, value in properties.items())
    if lake.declares(Feature.UPSERT):
        keyed.round(0, keyed.staged({1: "a", 2: "b"}), keyed.staged({3: "c"}))
    else:
        table.append(0)
    _keep_feed(table, harness)
    rows, marks, states = table.read(), [table.latest], [_rows(table)]

    def done() -> None:
        marks.append(table.latest)
        states.append(_rows(table))

    if lake.declares(Feature.UPSERT):
        keyed.round(1, keyed.staged({1: "A", 2: "b", 4: "d"}, keyed.files(1)))
        done()
        keyed.round(2, keyed.staged({}, keyed.files(3)))
        done()
    elif lake.declares(Feature.OVERWRITE):
        table.round(token(1), [ids_of(1)], WriteMode.OVERWRITE)
        done()
    if harness.update_rows is not None:
        # In one file, of which the other rows are no changes.
        foreign.update(table, harness, table.ids[-1:], "name", "changed by others")
        done()
    for end, expected in zip(marks[1:], states[1:], strict=True):
        what = f"rows of a table{under} after the changes of its feed" + (
            ", the last of which are of a row that others updated" if end == marks[-1] and harness.update_rows else ""
        )
        expect(_applied(_changes(table, marks[0], end), rows), expected, what)
    for start, end in itertools.pairwise(marks):
        kinds = [_changes(table, version, version + 1)[CHANGE_TYPE].to_pylist() for version in range(start, end)]
        assert any(kinds), f"each of these commits changed rows of a table{under}"
        for went in ([kind == "-D" for kind in each] for each in kinds):
            expect(went, sorted(went, reverse=True), f"which changes of a version are -D, which come first{under}")
    expect(_changes(table, marks[-1], marks[-1]).num_rows, 0, "the number of changes of a range without a commit")


def test_each_range_is_the_sum_of_its_versions(lake: Lake, harness: Harness) -> None:
    """Of appends, empty epochs, replays, changed columns, replaced rows and compactions: each change once, by whichever
    range it is read, and what is replayed or moved is none."""
    table = lake.create()
    table.append(0)
    _keep_feed(table, harness)
    marks, expected = [table.latest], []

    def done(what: str, came: Sequence[int] = (), went: Sequence[int] = ()) -> None:
        marks.append(table.latest)
        expected.append(Counter([("+I", i) for i in came] + [("-D", i) for i in went]))
        found = Counter(_told(table, marks[-2], marks[-1]))
        expect(dict(found), dict(expected[-1]), f"changes by {what}")

    table.append(1, ids_of(1, 0), ids_of(1, 1))
    done("an append", ids_of(1, 0) + ids_of(1, 1))
    table.append(2, [])
    done("an empty epoch")
    table.append(2, [])
    done("a replay")
    if lake.declares(Feature.ADD_COLUMN):
        lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int32()))])
        done("a new column")
        rows = batch(ids_of(3)).append_column("more", pa.array(ids_of(3), pa.int32()))
        table.publish_arrow([rows], token(3))
        done("an append of the new column", ids_of(3))
        if lake.declares(Feature.WIDEN_TYPE):
            lake.storage.catalog().alter_table(table.path, [WidenColumn("more", pa.int64())])
            done("a wider column")
    if harness.compact is not None:
        foreign.compact(table, harness)
        done("a compaction")
    if harness.delete_rows is not None:
        for number, gone in enumerate((ids_of(1, 1)[:2], ids_of(1, 1)[3:4]), start=1):
            harness.delete_rows(lake.storage, table.info, gone)
            done(f"delete {number} by others of rows of one file", went=gone)
    if lake.declares(Feature.OVERWRITE):
        was = table.read().sort_by("id")
        table.round(None, [ids_of(4)], WriteMode.OVERWRITE)
        done("an overwrite", ids_of(4), was["id"].to_pylist())
        changes = _changes(table, marks[-2], marks[-1]).sort_by("id")
        gone = changes.filter(pc.equal(changes[CHANGE_TYPE], "-D")).drop_columns([CHANGE_TYPE])
        expect(gone, was, "rows that went, of files from before and after columns were changed")
        kinds = [kind for kind, _ in _told(table, marks[-2], marks[-1])]
        expect(kinds, sorted(kinds, reverse=True), "within a version the rows that went come before those that came")
    for first, last in itertools.combinations(range(len(marks)), 2):
        found = Counter(_told(table, marks[first], marks[last]))
        whole = sum(expected[first:last], Counter[tuple[str, int]]())
        expect(dict(found), dict(whole), f"changes of the versions {marks[first]} to {marks[last]}")
    if harness.expire is not None:
        for number in range(2):  # whichever is the earliest then, the one before it has changes
            table.append(number, ids_of(5 + number), pipeline="expires")
            done("an append before an expiry", ids_of(5 + number))
        versions = range(marks[0], marks[-1])
        before = {version: Counter(_told(table, version, version + 1)) for version in versions}
        earliest = foreign.expire(table, harness, marks[0])
        for version in versions[earliest - marks[0] :]:
            expect(
                dict(Counter(_told(table, version, version + 1))),
                dict(before[version]),
                f"changes of version {version}, which can be read after an expiry: {earliest} is the earliest",
            )
        with refused(OffsetsExpired, "changes of versions are planned that have expired"):
            table.feed.plan(marks[0], marks[-1])
    with refused(SnapshotNotFound, "changes of versions are planned that are not there yet"):
        table.feed.plan(marks[-1], marks[-1] + 2)


def _told(table: Table, start: int, end: int) -> list[tuple[str, int]]:
    """The kind and the id of each change, in the feed's order."""
    changes = _changes(table, start, end)
    return list(zip(changes[CHANGE_TYPE].to_pylist(), changes["id"].to_pylist(), strict=True))


@pytest.mark.needs(Feature.OVERWRITE)
def test_equal_rows_are_told_one_by_one(table: Table, harness: Harness) -> None:
    """Where two rows are the same and one goes, one goes: a table is no set of rows."""
    table.append(0, [])
    _keep_feed(table, harness)
    start = table.latest
    rows = table.read()
    one, two = ids_of(0)[:2]
    for epoch, (ids, mode) in enumerate(
        [([one, one, two], WriteMode.APPEND), ([one, two], WriteMode.OVERWRITE), ([two, two], WriteMode.OVERWRITE)], 1
    ):
        table.round(token(epoch), [ids], mode)
        found = _applied(_changes(table, start, table.latest), rows)
        expect(found, _rows(table), f"rows of a table that has the rows {ids} now, by the changes that its feed tells")


def test_splits_travel_and_are_read_by_some_columns(table: Table, harness: Harness) -> None:
    _keep_feed(table, harness)
    start = table.latest
    table.append(0)
    feed = pickle.loads(pickle.dumps(table.feed))  # noqa: S301 - as Spark does
    source = table.source
    latest = table.latest
    plan = feed.plan(start, latest)
    assert plan.snapshot_id in (None, table.changes.snapshot_at(latest - 1)), (
        f"the snapshot that a plan of a feed names: found {plan.snapshot_id}, and its last version is {latest - 1}"
    )
    for names in ([CHANGE_TYPE, "id"], ["value"], []):
        schema = pa.schema([plan.schema.field(name) for name in names])
        travelled = [unpack(source.split_serializer, pack(source.split_serializer, split)) for split in plan.splits]
        batches = [rows for split in travelled for rows in read_split(table.source, split, schema)]
        assert all(rows.schema.equals(schema) for rows in batches), (
            f"batches of a feed have the columns that were asked for, {names}"
        )
        expect(
            sum(rows.num_rows for rows in batches),
            5,
            f"the number of rows of a feed that was read by the columns {names}",
        )


def test_a_table_that_keeps_no_feed_is_refused(table: Table, harness: Harness) -> None:
    if harness.keep_feed is None:
        assert table.feed is not None, "each table keeps one"
        return
    with refused(ConfigError, "the feed is opened of a table that keeps none") as caught:
        _ = table.feed
    assert caught.value.fix, "the refusal of a feed says what to do"


def test_versions_from_before_a_feed_are_refused(table: Table, harness: Harness) -> None:
    """A user has the feed kept from now on. What the commits before did to rows it does not tell, and says so: also
    to who has just read what came since."""
    if harness.keep_feed is None:
        assert table.feed is not None, "each table keeps one"
        return
    before = table.latest
    table.append(0)
    unfed = table.latest
    _keep_feed(table, harness)
    since = table.latest
    table.append(1)
    told = "a range of a feed is planned that begins before the feed was kept"
    for _ in range(2):
        for end in (unfed, since, table.latest):
            with refused((IncompatibleTable, OffsetsExpired), told):
                table.feed.plan(before, end)
        expect(sorted(_changes(table, since, table.latest)["id"].to_pylist()), ids_of(1), "rows that a feed tells of")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_table_that_was_made_anew_has_its_own_feed(table: Table, harness: Harness) -> None:
    """Versions of the two may have the same numbers, and be read in the same process."""
    for number in range(2):
        _keep_feed(table, harness)
        start = table.latest
        table.append(0, ids_of(number))
        found = _changes(table, start, table.latest)
        expect(
            sorted(found["id"].to_pylist()), ids_of(number), f"rows that the feed of table {number} of this name tells"
        )
        if not number:
            table.lake.storage.catalog().drop_table(table.path)
            table = table.lake.create()
