"""Replacing files: those that leave, those that come and the watermark change in one atomic step."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from laketier.maintenance.orphans import collect_orphans
from laketier.spi import (
    AddColumn,
    CommitError,
    Conflict,
    Feature,
    LaketierError,
    Leaf,
    Op,
    RowsChanged,
    ScanRequest,
    Watermark,
    WriteMode,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.keyed import AFTER_1, UPSERT, Keyed, epoch_1, publish
from laketier_conformance.lake import SCHEMA, read_plan, token
from laketier_conformance.search_bounds import foreign_commits

pytestmark = pytest.mark.needs(Feature.UPSERT)
TASKS = 60
"""Past the numbers of small files at which a format commonly writes them as one: 10, 32, 50."""


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


def test_a_file_is_replaced_whose_name_others_contain(keyed: Keyed) -> None:
    """As that of number 1 is a part of 10. It leaves alone. More files than these may be read as one split."""
    before = {1: "a", 2: "b", 3: "c", **dict.fromkeys(range(100, 113), "old")}
    keyed.round(1, *(keyed.staged({key: name}) for key, name in before.items() if key >= 100))
    splits = [(split.files, keys) for split, keys in keyed.splits() if keys]
    names = [name for files, _ in splits for name in files]
    files, keys = max(splits, key=lambda each: max(sum(file in name for name in names) for file in each[0]))
    after = before | dict.fromkeys(keys, "new")
    keyed.round(2, keyed.staged({key: after[key] for key in keys}, files))
    expect(keyed.rows, after, f"rows of {len(names)} files after {files} of these were replaced")


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
    """Each takes the files of the one before: enough of them that formats merge and roll up their metadata, and sum up
    commits that take away what an earlier sum has."""
    for epoch in range(1, 34):
        found = [split for split, keys in keyed.splits() if 1 in keys]
        # The next epoch would replace the second one, too.
        expect(len(found), 1, f"the number of splits with a key that {2 * epoch - 2} commits replaced, or left")
        keyed.round(epoch, keyed.staged({1: f"a{epoch}", 2: "b"}, found[0].files))
        foreign_commits(keyed.table, range(epoch, epoch + 1))
    what = "33 epochs that replaced a file, each before an empty one of another pipeline"
    expect(keyed.rows, {1: "a33", 2: "b", 3: "c"}, f"rows after {what}")
    expect(len(keyed.splits()), 2, f"the number of splits after {what}")


def test_many_small_files_of_keys(keyed: Keyed) -> None:
    """Where a commit also writes small files of earlier ones as fewer, those that it replaces are none of them."""
    keys = range(100, 100 + TASKS)
    keyed.round(1, *(keyed.staged({key: "old"}) for key in keys))
    changed, rows = {*keys[:: TASKS // 4]}, keyed.rows
    results = [
        keyed.staged({key: "new" if key in changed else rows[key] for key in found}, split.files)
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
    keyed.round(1, epoch_1(keyed))
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
        keyed.round(1, epoch_1(keyed)),
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
    keyed.round(1, epoch_1(keyed))
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


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_orphans(keyed: Keyed) -> None:
    """Live files and those of older snapshots stay; what a lost attempt staged goes."""
    keyed.round(1, epoch_1(keyed))
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
