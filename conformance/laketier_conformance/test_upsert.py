"""Replacing files: those that leave, those that come and the watermark change in one atomic step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from laketier.kit import FailpointError
from laketier.maintenance.orphans import collect_orphans
from laketier.spi import (
    AddColumn,
    BucketSpec,
    CommitError,
    Conflict,
    DeliveryLevel,
    Feature,
    FeatureNotSupported,
    IncompatibleData,
    IncompatibleTable,
    LaketierError,
    Leaf,
    Op,
    PartitionField,
    RowsChanged,
    ScanRequest,
    UnsupportedType,
    Watermark,
    WriteMode,
    WriteResult,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome
from laketier.tiering.failpoints import ACK_BEFORE, PUBLISH_AFTER, PUBLISH_BEFORE
from laketier_conformance.children import Child, ChildDied
from laketier_conformance.expect import expect, goes_well, refused, the_one
from laketier_conformance.failpoints import CountedFailpoints
from laketier_conformance.keyed import UPSERT, Keyed, Rows, publish
from laketier_conformance.lake import SCHEMA, Lake, Table, read_plan, token
from laketier_conformance.odd_rows import UNPRESSED

pytestmark = pytest.mark.needs(Feature.UPSERT)
TASKS = 60
"""Past the numbers of small files at which a format commonly writes them as one: 10, 32, 50."""


@pytest.fixture
def keyed(lake: Lake) -> Keyed:
    """Epoch 0 put 1 and 2 into one file, and 3 into another."""

    def make() -> Table:
        keyed = Keyed.of(lake.create(primary_key=("id",)))
        keyed.round(0, keyed.staged({1: "a", 2: "b"}), keyed.staged({3: "c"}))
        return keyed.table

    return Keyed(make)


def _epoch_1(keyed: Keyed) -> WriteResult:
    return keyed.staged({**keyed.beside(1), 1: "A", 4: "d"}, keyed.files(1))


AFTER_1 = {1: "A", 2: "b", 3: "c", 4: "d"}


# -- what replacing does --------------------------------------------------------------------------------------------


def test_only_removing(keyed: Keyed) -> None:
    """All rows of a file are deleted: it leaves, and none comes. It stays if the round is given up."""
    before, committer = keyed.rows, keyed.table.committer(UPSERT)
    committer.discard([keyed.staged({5: "e"}, keyed.files(1))])
    committer.close()
    with goes_well("a task is discarded that replaces a file: the file stays, as it is not what the task staged"):
        found = keyed.rows
    expect(found, before, "rows after a task that replaces a file was discarded")
    expect(
        keyed.round(1, keyed.staged({}, keyed.files(1))),
        RoundOutcome.PUBLISHED,
        "the outcome of an epoch that removes all rows of a file",
    )
    expect(keyed.rows, {3: "c"}, "rows after all rows of a file were removed")
    expect(
        keyed.round(1, keyed.staged({})),
        RoundOutcome.ALREADY_THERE,
        "the outcome of an epoch that removed rows and is run again",
    )


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
    plan = table.source.plan(ScanRequest())
    replaced = tuple(file for split in plan.splits for file in split.files)
    publish(table, 2, replace(staged(100, keys), replaced=replaced))
    expect(
        table.ids, list(range(100, 100 + len(keys))), f"the ids of these rows after all of them were replaced: {keys}"
    )


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


def test_every_file_is_replaced(keyed: Keyed) -> None:
    expect(
        keyed.round(1, keyed.staged({1: "A", 2: "B", 3: "C"}, keyed.files())),
        RoundOutcome.PUBLISHED,
        "the outcome of an epoch that replaces every file",
    )
    expect(keyed.rows, {1: "A", 2: "B", 3: "C"}, "rows after every file was replaced")


def test_each_task_replaces_files(keyed: Keyed) -> None:
    """Each result of a commit names files of its own that leave."""
    expect(
        keyed.round(1, keyed.staged({1: "A", 2: "B"}, keyed.files(1)), keyed.staged({3: "C"}, keyed.files(3))),
        RoundOutcome.PUBLISHED,
        "the outcome of an epoch of two tasks, each of which replaces a file",
    )
    expect(keyed.rows, {1: "A", 2: "B", 3: "C"}, "rows after each of two tasks replaced a file")


def test_every_row_is_removed(keyed: Keyed) -> None:
    """And the table lives on."""
    expect(
        keyed.round(1, keyed.staged({}, keyed.files())),
        RoundOutcome.PUBLISHED,
        "the outcome of an epoch that removes every row",
    )
    expect(keyed.rows, {}, "rows after every row was removed")
    expect(
        keyed.round(2, keyed.staged({5: "e"})),
        RoundOutcome.PUBLISHED,
        "the outcome of the epoch after every row was removed",
    )
    expect(keyed.rows, {5: "e"}, "rows of the epoch after every row was removed")


def test_nothing_at_all(keyed: Keyed) -> None:
    """An empty epoch moves the watermark."""
    expect(keyed.round(1), RoundOutcome.PUBLISHED, "the outcome of an epoch without any result")
    mark = keyed.table.watermark()
    assert mark is not None, "a pipeline has a watermark after an epoch without any result"
    expect(mark.token.epoch, 1, "the epoch of the watermark after an epoch without any result")
    expect(keyed.rows, {1: "a", 2: "b", 3: "c"}, "rows after an epoch without any result")


def test_many_epochs(keyed: Keyed) -> None:
    """Each takes the files of the one before: enough of them that formats merge and roll up their metadata."""
    for epoch in range(1, 40):
        keyed.round(epoch, keyed.staged({1: f"a{epoch}", 2: "b"}, keyed.files(1)))
    expect(keyed.rows, {1: "a39", 2: "b", 3: "c"}, "rows after 39 epochs that replaced a file")
    expect(len(keyed.splits()), 2, "the number of splits after 39 epochs that replaced a file")


def test_many_small_files_of_keys(keyed: Keyed) -> None:
    """Where a commit also writes small files of earlier ones as fewer, those that it replaces are none of them."""
    keys = range(100, 100 + TASKS)
    keyed.round(1, *(keyed.staged({key: "old"}) for key in keys))
    changed = {*keys[:: TASKS // 4]}
    results = [
        keyed.staged({key: "new" if key in changed else keyed.rows[key] for key in found}, split.files)
        for split, found in keyed.splits()
        if found & changed
    ]
    keyed.round(2, *results)
    expected = {1: "a", 2: "b", 3: "c", **{key: "new" if key in changed else "old" for key in keys}}
    what = f"rows of {TASKS} tasks of a key each, after a round that replaces the files of {len(changed)} of these"
    expect(keyed.rows, expected, what)


@pytest.mark.needs(Feature.TIME_TRAVEL)
def test_the_snapshots_before(keyed: Keyed) -> None:
    """Each reads as it was, also after its files have left the table and orphans were collected."""
    seen = {}
    for epoch in range(1, 4):
        seen[keyed.table.source.plan(ScanRequest()).snapshot_id] = keyed.table.read().sort_by("id")
        keyed.round(epoch, keyed.staged({1: f"a{epoch}"}, keyed.files(1)))
    if keyed.table.lake.declares(Feature.ORPHAN_COLLECTION):
        collect_orphans(keyed.table.lake.storage, keyed.table.info, grace=timedelta(0))
    for snapshot, rows in seen.items():
        expect(
            keyed.table.read(snapshot_id=snapshot).sort_by("id"),
            rows,
            f"rows of snapshot {snapshot} after its files were replaced",
        )


def test_appends_and_upserts_take_turns(keyed: Keyed) -> None:
    """Two pipelines of one table; neither forgets the other's watermark."""
    keyed.table.append(0, [70], pipeline="appends")
    keyed.round(1, _epoch_1(keyed))
    expect(
        keyed.table.append(0, [70], pipeline="appends").outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of an append that is run again beside an upsert",
    )
    expect(
        keyed.table.append(1, [71], pipeline="appends").outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of the next append beside an upsert",
    )
    expect(
        keyed.round(1, _epoch_1(keyed)),
        RoundOutcome.ALREADY_THERE,
        "the outcome of an upsert that is run again beside appends",
    )
    expect(
        keyed.round(2, keyed.staged(keyed.beside(70), keyed.files(70))),
        RoundOutcome.PUBLISHED,
        "the outcome of an upsert that replaces an appended file",
    )
    expect(keyed.rows.keys(), {*AFTER_1, 71}, "the keys of the table after appends and upserts")
    marks = [keyed.table.watermark(pipeline) for pipeline in ("p", "appends")]
    commit = new_attempt_id()
    committer = keyed.table.committer(UPSERT, commit)
    committer.publish(committer.open(), [keyed.staged({}, keyed.files(71))], None)
    committer.close()
    expect(keyed.rows.keys(), {*AFTER_1}, "the keys of the table after an upsert of a batch")
    left = [keyed.table.watermark(pipeline) for pipeline in ("p", "appends")]
    expect(left, marks, "the watermarks of two pipelines after an upsert of a batch")
    expect(
        keyed.table.lake.storage.state(keyed.table.info).landed(commit),
        True,
        "whether the upsert of a batch landed, by the id of its commit",
    )


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_after_a_column_was_added(keyed: Keyed) -> None:
    """Files that stay have no such column, and those that replace others do."""
    table = keyed.table
    table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int64()))])
    schema = pa.schema([*SCHEMA, ("more", pa.int64())])
    rows = pa.RecordBatch.from_pylist([{"id": 1, "name": "A", "value": None, "more": 7}], schema=schema)
    publish(table, 1, replace(table.stage_arrow([rows], mode=UPSERT), replaced=keyed.files(1)))
    expect(table.info.descriptor.primary_key, ("id",), "the primary key after a column was added")
    read = table.read(columns=("id", "name", "more")).sort_by("id")
    expect(
        read.to_pydict(),
        {"id": [1, 3], "name": ["A", "c"], "more": [7, None]},
        "rows of files from before and after a column was added",
    )


@pytest.mark.needs(Feature.OVERWRITE)
def test_an_overwrite_drops_what_upserts_left(keyed: Keyed) -> None:
    keyed.round(1, _epoch_1(keyed))
    keyed.table.round(token(2), [[9]], WriteMode.OVERWRITE)
    expect(keyed.rows.keys(), {9}, "the keys of the table after an overwrite")
    keyed.round(3, keyed.staged({9: "i"}, keyed.files(9)))
    expect(keyed.rows, {9: "i"}, "rows after an overwrite and an upsert")


def test_a_split_that_is_cut_names_no_file(keyed: Keyed) -> None:
    """To replace a file by a part of its rows would lose the others."""
    whole, source = keyed.splits(), keyed.table.source
    for cut, request in (
        ("a limit", ScanRequest(limit=1)),
        ("a filter by the key", ScanRequest(filters=(Leaf("id", Op.GT, 1),))),
        ("a filter by a text", ScanRequest(filters=(Leaf("name", Op.EQ, "b"),))),
    ):
        plan = source.plan(request)
        for split in plan.splits:
            keys = set(read_plan(source, replace(plan, splits=(split,)))["id"].to_pylist())
            theirs = {key for each, found in whole if set(each.files) & set(split.files) for key in found}
            assert not split.files or keys == theirs, (
                f"a split that {cut} cut names no file: found the keys {keys} of {theirs}, and {split.files}"
            )


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


@pytest.mark.needs(Feature.INCREMENTAL_READ)
def test_as_a_log(keyed: Keyed) -> None:
    """What replaces nothing was appended. What replaces rows is told: read on, a row would be there twice."""
    source, changes = keyed.table.source, keyed.table.changes
    start = changes.versions().latest
    keyed.round(1, keyed.staged({5: "e"}))
    end = changes.versions().latest
    expect(
        read_plan(source, changes.plan(start, end))["id"].to_pylist(),
        [5],
        "rows that an upsert appended which replaced nothing",
    )
    keyed.round(2, keyed.staged({5: "E"}, keyed.files(5)))
    latest = changes.versions().latest
    with refused(RowsChanged, "changes are planned over an upsert that replaced rows"):
        changes.plan(start, latest)
    expect(
        read_plan(source, changes.plan(start, latest, skip_changes=True))["id"].to_pylist(),
        [5],
        "rows that upserts appended, with those that replaced rows passed over",
    )


# -- one atomic step ------------------------------------------------------------------------------------------------


def test_of_two_drivers_one_wins(keyed: Keyed) -> None:
    """Both opened one state and rewrote one file. The second loses for certain, and nothing of it is there."""
    first, second = keyed.table.committer(mode=UPSERT), keyed.table.committer(mode=UPSERT)
    state_1, state_2 = first.open(), second.open()
    theirs, ours = _epoch_1(keyed), keyed.staged({1: "lost", 2: "lost"}, keyed.files(1))
    first.publish(state_1, [theirs], Watermark(token(1), "first"))
    with refused(Conflict, "the second of two drivers publishes that rewrote one file"):
        second.publish(state_2, [ours], Watermark(token(1), "second"))
    first.close()
    second.close()
    expect(keyed.rows, AFTER_1, "rows after the second driver was refused")
    mark = keyed.table.watermark()
    assert mark is not None, "a pipeline has a watermark after two drivers raced"
    expect(mark.commit_id, "first", "the commit in the watermark: that of the driver that won")


@pytest.mark.parametrize("rows", [{9: "lost", 2: "b"}, {9: "lost"}], ids=["replaced", "new"])
def test_of_two_pipelines_one_brings_a_new_key(keyed: Keyed, rows: Rows) -> None:
    """Both saw a table without it. Where the second one replaces no file, it collides with none, and would bring the
    key a second time."""
    late = keyed.table.committer(mode=UPSERT)
    state = late.open()
    ours = keyed.staged({**keyed.beside(2), **rows}, keyed.files(2)) if 2 in rows else keyed.staged(rows)
    keyed.round(0, keyed.staged({9: "i"}), pipeline="other")
    with refused(Conflict, "an upsert brings a key, against a state from before another pipeline brought it"):
        late.publish(state, [ours], Watermark(token(1), "late"))
    late.close()
    expect(keyed.rows, {1: "a", 2: "b", 3: "c", 9: "i"}, "rows after the second of two upserts of one new key")


@pytest.mark.parametrize("rival", [WriteMode.APPEND, UPSERT], ids=["append", "upsert"])
def test_a_rival_that_leaves_the_files_alone(keyed: Keyed, rival: WriteMode) -> None:
    """It changed the snapshot all the same: the core merged without the rows that it brought."""
    committer = keyed.table.committer(mode=UPSERT)
    state, ours = committer.open(), _epoch_1(keyed)
    publish(keyed.table, 0, keyed.staged({7: "g"}), pipeline="other", mode=rival)
    with refused(Conflict, "an upsert is published against a state that a rival made stale"):
        committer.publish(state, [ours], Watermark(token(1), "late"))
    committer.close()
    expect(keyed.rows, {1: "a", 2: "b", 3: "c", 7: "g"}, "rows after a stale upsert was refused")


def test_an_append_that_was_planned_before(keyed: Keyed) -> None:
    """It stays or loses: it never brings back what was replaced, and never vanishes behind a success."""
    late = keyed.table.committer()
    state, staged = late.open(), keyed.table.staged([80])
    keyed.round(1, _epoch_1(keyed))
    expected = set(AFTER_1)
    with contextlib.suppress(Conflict):
        late.publish(state, [staged], Watermark(token(0, "late"), "c"))
        expected.add(80)
    late.close()
    expect(keyed.rows.keys(), expected, "the keys after an append that was planned before an upsert")
    early = keyed.table.staged([81])
    keyed.round(2, keyed.staged({90: "z"}, [name for split, _ in keyed.splits() for name in split.files]))
    with goes_well("a round is published that had staged its rows before another one's upsert"):
        keyed.table.commit([early], token(0, "early"))
    expect(keyed.rows.keys(), {90, 81}, "the keys of a round that had staged them before an upsert of all files")


@pytest.mark.parametrize("how", ["left before", "never there", "twice"])
def test_files_that_are_not_live(keyed: Keyed, how: str) -> None:
    """Nothing is published: neither the watermark nor the rows beside them."""
    gone = keyed.files(1)
    keyed.round(1, keyed.staged({1: "A", 2: "b"}, gone))
    live = keyed.files(1)
    replaced = {"left before": gone, "never there": (f"{gone[0]}-never",), "twice": live + live}[how]
    before = keyed.table.source.plan(ScanRequest()).snapshot_id
    committer = keyed.table.committer(mode=UPSERT)
    with refused(CommitError, f"an upsert is published that replaces files that are not live: {how}") as caught:
        committer.publish(committer.open(), [keyed.staged({1: "wrong"}, replaced)], Watermark(token(2), "c"))
    committer.close()
    assert not isinstance(caught.value, Conflict), "to try it again would not help"
    assert replaced[-1] in str(caught.value), f"the refusal names the file that is not live, {replaced[-1]}"
    expect(keyed.table.source.plan(ScanRequest()).snapshot_id, before, "the snapshot after an upsert was refused")
    expect(keyed.rows, {1: "A", 2: "b", 3: "c"}, "rows after an upsert was refused")


def test_an_upsert_publishes_no_old_result(keyed: Keyed) -> None:
    """The core merged its rows once, with those that were there then."""
    old = keyed.staged({1: "A", 2: "b"}, keyed.files(1))
    keyed.round(1, old)
    keyed.round(2, keyed.staged({1: "newer", 2: "b"}, keyed.files(1)))
    with contextlib.suppress(LaketierError):
        keyed.round(3, replace(old, replaced=()))
    rows = {1: "newer", 2: "b", 3: "c"}
    expect(keyed.rows, rows, "rows after an upsert was handed a result again whose rows were merged with newer ones")


# -- lost answers and dead drivers ----------------------------------------------------------------------------------


def test_the_effect_landed_and_the_answer_was_lost(keyed: Keyed, failpoints: CountedFailpoints) -> None:
    results = _epoch_1(keyed)
    failpoints.switch_on("publish.after=error@1")
    expect(keyed.round(1, results), RoundOutcome.RECOVERED, "the outcome of an upsert whose answer was lost")
    expect(keyed.rows, AFTER_1, "rows of an upsert whose answer was lost")


def _steps(keyed: Keyed, failpoints: CountedFailpoints) -> list[str]:
    rewritten = _epoch_1(keyed)  # the table and what staging does are no steps of a commit
    failpoints.record()
    keyed.round(1, rewritten)
    failpoints.forget()
    return failpoints.own


def _next(keyed: Keyed, epoch: int) -> tuple[dict[str, object], Rows]:
    """An epoch that changes 1, removes a row and adds one; and the rows after it."""
    rows = dict(keyed.rows)
    present = the_one((keys for _, keys in keyed.splits() if 1 in keys), "splits that have the row 1")
    new = {key: rows[key] for key in sorted(present) if key != epoch + 2} | {1: f"a{epoch}", epoch + 3: f"new {epoch}"}
    after = {key: name for key, name in rows.items() if key not in present} | new
    return {"rows": [[key, name] for key, name in new.items()], "replaced": list(keyed.files(1))}, after


def test_an_error_at_each_failpoint_of_the_format(keyed: Keyed, failpoints: CountedFailpoints) -> None:
    for epoch, step in enumerate(_steps(keyed, failpoints), start=2):
        task, after = _next(keyed, epoch)
        before = keyed.rows
        failpoints.switch_on(f"{step}=error@1")
        with contextlib.suppress(FailpointError, LaketierError):
            keyed.round(epoch, _result(keyed, task))
        failpoints.switch_on("")
        assert keyed.rows in (before, after), f"an error at {step}: the epoch is there or not, never in part"
        outcome = keyed.round(epoch, *([] if keyed.rows == after else [_result(keyed, task)]))
        assert outcome in (RoundOutcome.PUBLISHED, RoundOutcome.ALREADY_THERE), (
            f"an error at {step}: the replay of the upsert is published, or finds its epoch there"
        )
        expect(keyed.rows, after, f"an error at {step}: rows of the replay of the upsert")


def _result(keyed: Keyed, task: Mapping[str, object]) -> WriteResult:
    rows, replaced = task["rows"], task["replaced"]
    assert isinstance(rows, list), "a task has its rows as a list"
    assert isinstance(replaced, list), "a task has its replaced files as a list"
    return keyed.staged(dict(rows), replaced)


def test_killed_at_each_step(
    keyed: Keyed, children: Callable[[int], list[Child]], failpoints: CountedFailpoints
) -> None:
    """Of the protocol and of the format: readers see the epoch as a whole or not at all, and another process goes on
    from there."""
    steps = _steps(keyed, failpoints)
    failpoints.switch_on("")
    for epoch, step in enumerate((PUBLISH_BEFORE, *steps, PUBLISH_AFTER, ACK_BEFORE), start=2):
        task, after = _next(keyed, epoch)
        before = keyed.rows
        (child,) = children(1)
        with refused(ChildDied, f"a driver that is to be killed at {step} runs an upsert"):
            child.ask(
                keyed.table.lake, "replace", table="db.t", pipeline="p", epoch=epoch, **task, failpoints=f"{step}=kill"
            )
        seen = keyed.rows
        assert seen in (before, after), f"killed at {step}: the epoch is there or not, never in part"
        if keyed.table.lake.plugin.delivery is DeliveryLevel.EXACTLY_ONCE:
            landed = seen == after
        else:
            # Rows may be there before their watermark. Whoever replays the round merges with the table as it is now.
            mark = keyed.table.watermark()
            landed = mark is not None and mark.token.epoch == epoch
            task["replaced"] = list(keyed.files(1))
        if landed:
            expect(
                keyed.round(epoch),
                RoundOutcome.ALREADY_THERE,
                f"killed at {step}: the outcome of the replay of an upsert that landed",
            )
        else:
            expect(
                keyed.round(epoch, _result(keyed, task)),
                RoundOutcome.PUBLISHED,
                f"killed at {step}: the outcome of the replay of an upsert that did not land",
            )
        expect(keyed.rows, after, f"killed at {step}: rows of the replay of the upsert")


# -- orphans --------------------------------------------------------------------------------------------------------


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_orphans(keyed: Keyed) -> None:
    """Live files and those of older snapshots stay; what a lost attempt staged goes."""
    keyed.round(1, _epoch_1(keyed))
    lost = keyed.staged({1: "lost"}, keyed.files(1))
    keyed.table.lake.let_age()
    collected = collect_orphans(keyed.table.lake.storage, keyed.table.info, grace=timedelta(0))
    assert {file.path for file in lost.files} <= {file.path for file in collected.removed}, (
        "a collection removes the files of an attempt that lost"
    )
    expect(keyed.rows, AFTER_1, "rows after a collection")
    expect(
        keyed.round(2, keyed.staged({1: "again", 2: "b", 4: "d"}, keyed.files(1))),
        RoundOutcome.PUBLISHED,
        "the outcome of the next upsert after a collection",
    )
    expect(keyed.rows, {**AFTER_1, 1: "again"}, "rows of the next upsert after a collection")
