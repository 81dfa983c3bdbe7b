"""What a table knows of a pipeline and of a commit, however many commits of others came since."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    CommitterInitContext,
    Conflict,
    Feature,
    LaketierError,
    Leaf,
    Op,
    RenameColumn,
    RowsChanged,
    SchemaChange,
    SnapshotNotFound,
    TableState,
    Watermark,
    WidenColumn,
    WriteMode,
    WriteResult,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome
from laketier_conformance.children import Child, ChildDied
from laketier_conformance.expect import expect, refused, told
from laketier_conformance.foreign import collect
from laketier_conformance.harness import Harness
from laketier_conformance.interposed.looks import Looks
from laketier_conformance.lake import Lake, Opened, Table, batch, ids_of, read_plan, token
from laketier_conformance.outside import local_folder
from laketier_conformance.search_bounds import foreign_commits

FEW, MORE = 31, 36
OTHERS = 900_000
"""From this id on rows are of commits that came later."""
LONGEST, PAST = 12_000, 3
"""So long a history is made where a number in the plugin's code seems to end a search, and so many commits longer than
that number."""
AT_ONCE = {n: OTHERS + 1 + n for page in (10, 32, 50, 64, 100, 128, 200, 256) for n in range(page - 4, page - 1)}
"""Of commits of others, by number: the row of each that is the last or the first of so many as are commonly read at
once. Two commits come before theirs, or three."""
PIPELINES = 120
"""With each tenth of them left out, more than a list of pipelines commonly has room for: 10, 32, 64, 100."""
TASKS = 105
"""Past the numbers of small files at which a format commonly writes them as one: 10, 32, 50. And past those that are
commonly the most of one request: 64, 100."""


def test_commits_of_others_hide_nothing(
    opened: Opened,
    folder: Path,
    tmp_path: Path,
    children: Callable[[int], list[Child]],
    pytestconfig: pytest.Config,
    unproven: Callable[[str, str], None],
) -> None:
    """Neither the watermark nor a commit is looked for among the newest commits only, and a change of the schema ends
    no search. ``--lake-commits`` is past the depths at which a search is commonly cut, and past the intervals of
    checkpoints: 10, 32, 64, 100, 256. Some formats write all of their snapshots anew with each commit, so more commits
    cost their square. More are made for a format alone whose own code has a number that seems to end a search."""
    foreign = int(pytestconfig.getoption("lake_commits"))
    with opened(tmp_path / "bounds") as beside:
        (child,) = children(1)
        try:
            answer = child.ask(beside, "bounds", above=foreign)
        except (ChildDied, TimeoutError) as error:  # with another number any code may do anything
            answer = {}
            unproven("numbers that end a search", f"the process in which each was made small: {told(error)}")
        if answer.get("left"):
            unproven("numbers that end a search", f"{answer['left']} of them were not made small, as it takes too long")
        for bound, place in answer.get("bounds", ()):
            if bound <= LONGEST:
                foreign = max(foreign, bound + PAST)
            else:
                why = f"the number in {place} seems to end a search, and no such history is made"
                unproven(f"watermarks and commits more than {bound} commits back", why)
    with opened(folder) as lake:
        _are_there_behind(foreign, lake.create())


def _are_there_behind(foreign: int, table: Table) -> None:
    begun = _replaced(table)
    slept = (sleeper := table.committer()).open()
    commits = {"a pipeline": new_attempt_id(), "no pipeline": new_attempt_id()}
    mark = Watermark(token(0, fence=3), commits["a pipeline"])
    for number, (whose, commit) in enumerate(commits.items()):
        staged = table.staged(ids_of(number))
        committer = table.committer(commit_id=commit)
        committer.publish(committer.open(), [staged], mark if whose == "a pipeline" else None)
        committer.close()
    foreign_commits(table, range(foreign // 3), AT_ONCE)
    if begun.old is not None:
        rows = table.ids
        with suppress(LaketierError):
            table.commit([begun.old], None)
        what = f"a batch was overwritten, {foreign // 3} commits of others came, and its result was handed over again"
        expect(table.ids, rows, f"rows after {what}")
    if table.lake.declares(Feature.ADD_COLUMN):
        table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("extra", pa.string()))])
    # As many pipelines from the start would cost a format its square that keeps their watermarks with each snapshot.
    many = max(foreign // 3, foreign - PIPELINES)
    foreign_commits(table, range(foreign // 3, many), AT_ONCE)
    foreign_commits(table, range(many, foreign), AT_ONCE, pipelines=PIPELINES)
    theirs = sorted(row for number, row in AT_ONCE.items() if number < foreign)
    committer = table.committer()
    opened, looked_at = committer.open(), table.lake.storage.state(table.info)
    committer.close()
    for state, which in ((opened, "`open`"), (looked_at, "`LakeStorage.state`")):
        found = state.watermark("p")
        assert found is not None, f"{foreign} commits of others came after the pipeline's, and {which} forgot it"
        expect(found.token, mark.token, f"{foreign} commits of others came since, and {which} tells the watermark")
        _knows_each_pipeline(state, range(many, foreign), which)
    for whose, commit in commits.items():
        assert opened.landed(commit), (
            f"the commit of {whose} landed {foreign} commits ago, and `landed` says that it did not: its files would "
            "be deleted or published again. What the history no longer tells is an UnknownOutcome"
        )
    assert not opened.landed(new_attempt_id()), "`landed` knows a commit that never was"
    since = f"{foreign} commits of others came since, and"
    _tells_what_lies_far_back(table, begun, since, theirs)
    with refused(Conflict, f"{since} a batch is published against the state of before"):
        sleeper.publish(slept, [], None)
    sleeper.close()
    expect(table.append(0, fence=3).outcome, RoundOutcome.ALREADY_THERE, f"{since} a replay adds nothing")
    expect(table.append(1, ids_of(2), fence=3).outcome, RoundOutcome.PUBLISHED, f"{since} the next epoch is published")
    expect(table.ids, ids_of(0) + ids_of(1) + ids_of(2) + theirs, f"{since} each epoch's rows are there once")


def _knows_each_pipeline(state: TableState, numbers: range, which: str) -> None:
    """Those that `foreign_commits` made, which beside each tenth commit are one each."""
    theirs = {f"other {number % PIPELINES}": number for number in numbers if number % 10 != 9}
    for name, number in theirs.items():
        mark = state.watermark(name)
        assert mark is not None, f"{len(theirs)} pipelines published, and {which} does not know {name!r} of them"
        expect(
            mark.token, token(number // PIPELINES, name), f"{which} of {len(theirs)} pipelines tells that of {name!r}"
        )
    listed = state.pipelines()
    missing = set[str]() if listed is None else {*theirs} - {*listed}
    assert not missing, f"{which} lists {len(listed or ())} pipelines, and not {sorted(missing)}, which published"


@dataclass(frozen=True)
class _Begun:
    """The first snapshots of a table that were made in turn, and versions: before all rows were replaced, and after.
    And what the first task staged, whose rows were taken away."""

    snapshots: list[int | None]
    before: int
    after: int
    old: WriteResult | None


def _replaced(table: Table) -> _Begun:
    """Rows that a format which overwrites takes away again, twice: a sum of commits begins at the last time."""
    full = table.lake.declares(Feature.OVERWRITE)
    old = table.staged([OTHERS]) if full else None
    first = table.commit([old] if old else [], None).snapshot_id
    if full:
        table.round(None, [[OTHERS + 1]], WriteMode.OVERWRITE)
    before = _latest(table)
    second = table.round(None, [[]], WriteMode.OVERWRITE if full else WriteMode.APPEND).snapshot_id
    return _Begun([first, second], before, _latest(table), old)


def _tells_what_lies_far_back(table: Table, begun: _Begun, since: str, theirs: Sequence[int]) -> None:
    """Lists come in pages, and what is beyond the first one counts as much, also where orphans are collected."""
    if table.lake.declares(Feature.ORPHAN_COLLECTION):
        collect(table)
    if table.lake.declares(Feature.HISTORY, Feature.TIME_TRAVEL):
        listed = [line.snapshot_id for line in table.history.snapshots(1 << 20)]
        for snapshot in filter(None, begun.snapshots):
            with suppress(SnapshotNotFound):
                rows = table.read(snapshot_id=snapshot)["id"].to_pylist()
                full = table.lake.declares(Feature.OVERWRITE) and snapshot == begun.snapshots[0]
                expect(rows, [OTHERS] if full else [], f"{since} the rows of snapshot {snapshot}")
                assert snapshot in listed, (
                    f"{since} snapshot {snapshot} can still be read, and the history of {len(listed)} does not have it"
                )
        most = len(listed) - 1
        newest = [line.snapshot_id for line in table.history.snapshots(most)]
        expect(newest, listed[:most], f"{since} the newest {most} of {len(listed)} snapshots")
    if not table.lake.declares(Feature.INCREMENTAL_READ):
        return
    versions = table.changes.versions()
    if versions.earliest <= begun.after:
        rows = read_plan(table.source, table.changes.plan(begun.after, versions.latest))
        expected = [*ids_of(0), *ids_of(1), *theirs]
        expect(sorted(rows["id"].to_pylist()), expected, f"{since} the changes from their beginning")
    if versions.earliest <= begun.before and table.lake.declares(Feature.OVERWRITE):
        with refused(RowsChanged, f"{since} changes are planned from before all rows were taken away"):
            table.changes.plan(begun.before, versions.latest)


def test_commits_of_others_change_nothing_that_was_done(lake: Lake, harness: Harness) -> None:
    """A format sums up its history now and then, and whoever reads from there on finds what the sum has: rows of each
    commit, columns by their new names and types, rows that others deleted, and where changes began."""
    table = lake.create(pa.schema([("id", pa.int64()), ("name", pa.string()), ("count", pa.int32())]))
    snapshots: list[int | None] = []
    bounds = [_latest(table)]

    def done() -> None:
        snapshots.append(table.info.snapshot_id)
        bounds.append(_latest(table))

    table.publish_arrow([_named("name", ids_of(0))], token(0))
    done()
    name = _reshaped(table)
    table.publish_arrow([_named(name, ids_of(1))], token(1))
    done()
    if harness.delete_rows is not None:
        harness.delete_rows(lake.storage, table.info, ids_of(0)[1:3])
    before = _looked_at(table, name, snapshots, bounds)
    _others(table, MORE)
    since = f"after {MORE} commits of others"
    try:
        after = _looked_at(table, name, snapshots, bounds)
    except AssertionError:
        raise
    except Exception as error:  # noqa: BLE001 - reported
        pytest.fail(f"{since} a table whose columns were changed before is read: found {told(error)}")
    for what, expected in before.items():
        expect(after[what], expected, f"{what}, {since}")
    theirs = [i for i in table.ids if i >= OTHERS]
    expect(theirs, list(range(OTHERS, OTHERS + MORE)), f"rows of {MORE} commits of one row each")


def _named(name: str, ids: Sequence[int]) -> pa.RecordBatch:
    columns = {"id": ids, name: [f"row {i}" for i in ids], "count": pa.array([i % 7 for i in ids], pa.int32())}
    return pa.RecordBatch.from_pydict(columns)


def _reshaped(table: Table) -> str:
    """Change columns, as far as the format does. What ``name`` is called now."""
    each: list[tuple[Feature, SchemaChange]] = [
        (Feature.RENAME_COLUMN, RenameColumn("name", "title")),
        (Feature.WIDEN_TYPE, WidenColumn("count", pa.int64())),
        (
            Feature.ADD_COLUMN,
            AddColumn(pa.field("name" if table.lake.declares(Feature.RENAME_COLUMN) else "more", pa.string())),
        ),
    ]
    for feature, change in each:
        if table.lake.declares(feature):
            table.lake.storage.catalog().alter_table(table.path, [change])
    return "title" if table.lake.declares(Feature.RENAME_COLUMN) else "name"


def _others(table: Table, number: int) -> None:
    """Commits of one row each."""
    factory = table.factory
    for epoch in range(number):
        staged = table.stage_arrow([pa.record_batch({"id": [OTHERS + epoch]})])
        commit = new_attempt_id()
        committer = factory.create_committer(CommitterInitContext(commit_id=commit))
        committer.publish(committer.open(), [staged], Watermark(token(epoch, "others"), commit))
        committer.close()


def _looked_at(table: Table, name: str, snapshots: Sequence[int | None], bounds: Sequence[int]) -> Mapping[str, Any]:
    """What a reader finds of the rows below `OTHERS`, by what it asks for."""
    whole = table.read(filters=(Leaf("id", Op.LT, OTHERS),)).sort_by("id")
    one = (Leaf(name, Op.EQ, f"row {ids_of(0)[0]}"),)
    found = {
        "the columns": [(field.name, str(field.type)) for field in whole.schema],
        "the rows of before": whole.to_pydict(),
        f"the rows by the filter {one[0]}": table.read(filters=one)["id"].to_pylist(),
    }
    if table.lake.declares(Feature.TIME_TRAVEL):
        for number, snapshot in enumerate(snapshots):
            rows = table.read(snapshot_id=snapshot).sort_by("id")
            found[f"the snapshot after epoch {number}"] = rows.to_pydict()
    if table.lake.declares(Feature.INCREMENTAL_READ):
        for number, (start, end) in enumerate(itertools.pairwise(bounds)):
            rows = read_plan(table.source, table.changes.plan(start, end)).sort_by("id")
            found[f"the changes of epoch {number}"] = rows.to_pydict()
    return found


def test_many_small_files_are_read_once(table: Table) -> None:
    """Whether or not a commit also writes those of earlier ones as fewer: no row is there again, none is gone, and none
    is of another commit now."""
    epochs = [[ids_of(0, task, 1) for task in range(TASKS)], [ids_of(TASKS, 0, 1)], [ids_of(TASKS + 1, 0, 1)]]
    ids = [sorted(i for task in tasks for i in task) for tasks in epochs]
    bounds = [_latest(table)]
    snapshots = []
    for epoch, tasks in enumerate(epochs):
        table.append(epoch, *tasks)
        bounds.append(_latest(table))
        snapshots.append(table.info.snapshot_id)
    rows = table.read().sort_by("id")
    since = f"a round of {TASKS} tasks of a row each, and then two rounds of one row,"
    expect(rows, pa.Table.from_batches([batch(sorted(i for each in ids for i in each))]), f"{since} leave these rows")
    expect(table.append(2, *epochs[2]).outcome, RoundOutcome.ALREADY_THERE, f"{since} of which the last is replayed")
    for epoch in range(len(epochs)):
        if table.lake.declares(Feature.TIME_TRAVEL):
            found = sorted(table.read(columns=("id",), snapshot_id=snapshots[epoch])["id"].to_pylist())
            expect(
                found, sorted(i for each in ids[: epoch + 1] for i in each), f"{since} the snapshot of epoch {epoch}"
            )
        if table.lake.declares(Feature.INCREMENTAL_READ):
            plan = table.changes.plan(bounds[epoch], bounds[epoch + 1])
            found = sorted(read_plan(table.source, plan)["id"].to_pylist())
            expect(found, ids[epoch], f"{since} the changes of epoch {epoch}")


def _latest(table: Table) -> int:
    """The version after the newest; 0 of a format that has none."""
    return table.latest if table.lake.declares(Feature.INCREMENTAL_READ) else 0


def test_a_long_history_opens_few_files(
    table: Table, looks: Callable[[], AbstractContextManager[Looks]], unproven: Callable[[str, str], None]
) -> None:
    """Neither a reader nor a driver that asks for its watermark opens a file for each commit of others: a stream makes
    one commit after the other, for years. Only who asks what became of a commit may look at each."""
    if local_folder(table.info.location) is None:
        unproven("the cost of a long history", "the table is in no local folder")
        return
    table.append(0)
    foreign_commits(table, range(FEW))
    after_few = {what: _opened(table, looks, what) for what in ("rows", "watermark")}
    foreign_commits(table, range(FEW, FEW + MORE))
    for what, then in after_few.items():
        more = len(_opened(table, looks, what)) - len(then)
        assert more < MORE // 2, (
            f"who asks for the {what} of a table opens {len(then)} files after {FEW} commits of others, and {more} "
            f"more after {MORE} more of them: a long history is summed up, and fewer than {MORE // 2} were expected"
        )


def _opened(table: Table, looks: Callable[[], AbstractContextManager[Looks]], what: str) -> set[tuple[str, ...]]:
    with looks() as looked:
        run = looked.ask("tell", table=str(table.path), what=what)
    assert "told" in (run.answer or {}), f"a request to tell {what} after a long history: found {run.answer}"
    return {look.on for look in run.steps if look.call.startswith("open")}
