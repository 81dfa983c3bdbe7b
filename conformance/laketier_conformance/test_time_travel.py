"""Older snapshots after the table has changed: each has the columns and the rows that it had."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    ConfigError,
    Feature,
    Leaf,
    Not,
    Op,
    RenameColumn,
    ScanRequest,
    SchemaChange,
    WidenColumn,
    WriteMode,
    pack,
    unpack,
)
from laketier_conformance import foreign
from laketier_conformance.expect import columns, expect, goes_well, refused
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, Table, ids_of, read_pinned, tick, token
from laketier_conformance.oracle import compare

FIRST = pa.schema([("id", pa.int64()), ("name", pa.string()), ("count", pa.int32())])
ADDED, WIDER = AddColumn(pa.field("more", pa.int64())), WidenColumn("count", pa.int64())
RENAMED, AGAIN = RenameColumn("name", "title"), AddColumn(pa.field("name", pa.int64()))
ADD, WIDEN, RENAME = Feature.ADD_COLUMN, Feature.WIDEN_TYPE, Feature.RENAME_COLUMN


@dataclass(frozen=True)
class Then:
    """The table as it was once: by snapshot and by moment."""

    snapshot: int
    moment: int
    rows: pa.Table


def _grown(lake: Lake, steps: tuple[tuple[SchemaChange, ...], ...]) -> tuple[Table, list[Then]]:
    """A table with a commit of two rows before each step of changes, and after the last one."""
    table = lake.create(FIRST, "db.grown")
    seen = []
    for epoch, changes in enumerate([(), *steps]):
        if changes:
            lake.storage.catalog().alter_table(table.path, list(changes))
        schema = table.info.schema
        values = {pa.string(): ["a", None], pa.int32(): [7, None], pa.int64(): [2 * epoch, 2 * epoch + 1]}
        rows = pa.record_batch([pa.array(values[field.type], field.type) for field in schema], schema=schema)
        snapshot = table.publish_arrow([rows], token(epoch)).snapshot_id
        assert snapshot is not None, "a round that published rows has a snapshot"
        moment = tick()
        seen.append(Then(snapshot, moment, table.read().sort_by("id")))
    return table, seen


STEPS = {
    "added": pytest.param(((ADDED,),), marks=pytest.mark.needs(ADD)),
    "widened": pytest.param(((WIDER,),), marks=pytest.mark.needs(WIDEN)),
    "renamed": pytest.param(((RENAMED,),), marks=pytest.mark.needs(RENAME)),
    "added-and-widened": pytest.param(((ADDED,), (WIDER,)), marks=pytest.mark.needs(ADD, WIDEN)),
    "renamed-and-its-name-taken": pytest.param(((RENAMED,), (AGAIN,)), marks=pytest.mark.needs(RENAME, ADD)),
}


@pytest.mark.needs(Feature.TIME_TRAVEL)
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_an_older_snapshot_after_schema_changes(lake: Lake, steps: tuple[tuple[SchemaChange, ...], ...]) -> None:
    table, seen = _grown(lake, steps)
    for then in seen:
        _compare(table, then, f"snapshot {then.snapshot} is read after {steps}", snapshot_id=then.snapshot)
    newest = seen[-1].rows.schema.names
    for then in seen[:-1]:
        for name in set(newest) - set(then.rows.schema.names):
            with refused(ConfigError, f"column {name} is asked of a snapshot from before it was there", match=name):
                table.source.plan(ScanRequest(snapshot_id=then.snapshot, columns=(name,)))


@pytest.mark.needs(Feature.TIME_TRAVEL_BY_TIMESTAMP)
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_an_older_moment_after_schema_changes(lake: Lake, steps: tuple[tuple[SchemaChange, ...], ...]) -> None:
    table, seen = _grown(lake, steps)
    for then in seen:
        _compare(table, then, f"the moment after snapshot {then.snapshot} is read after {steps}", as_of=then.moment)


@pytest.mark.needs(Feature.TIME_TRAVEL_BY_TIMESTAMP, Feature.HISTORY)
def test_a_commit_is_there_from_its_own_moment_on(table: Table) -> None:
    """And not a millisecond before, by the moments that the history tells. What made the table is there, too, where it
    is a snapshot."""
    snapshots = []
    for epoch in range(3):
        tick()
        snapshots.append(table.append(epoch).snapshot_id)
    moments = {line.snapshot_id: line.committed_at for line in table.history.snapshots(9)}
    for before in set(moments) - set(snapshots):
        at = moments[before]
        if at is not None:
            found = table.read(as_of=at, columns=("id",)).num_rows
            expect(found, 0, f"the number of rows at the moment of snapshot {before}, which came before all rows")
    for epoch, snapshot in enumerate(snapshots):
        moment = moments[snapshot or 0]
        if moment is not None:
            found = table.read(as_of=moment, columns=("id",)).num_rows
            expect(found, 5 * (epoch + 1), f"the number of rows at the moment when epoch {epoch} landed")
            if epoch > 0:
                found = table.read(as_of=moment - 1, columns=("id",)).num_rows
                expect(found, 5 * epoch, f"the number of rows a millisecond before epoch {epoch} landed")


@pytest.mark.needs(Feature.TIME_TRAVEL_BY_TIMESTAMP)
def test_a_moment_after_a_rollback(table: Table, harness: Harness, unproven: Callable[[str, str], None]) -> None:
    """Another tool took the table back to an older snapshot. From then on a moment has the rows of that one: the newest
    commit of all is not what the table is."""
    table.append(0)
    snapshot = table.info.snapshot_id
    table.read(as_of=tick())  # a format without it refuses here
    if harness.roll_back is None:
        unproven("moments after a rollback", "the format's harness has no roll_back")
        return
    table.append(1)
    tick()
    foreign.roll_back(table, harness, snapshot, ids_of(0))
    found = sorted(table.read(as_of=tick(), columns=("id",))["id"].to_pylist())
    expect(found, ids_of(0), "rows as of a moment after a table was taken back to an older snapshot")


def _compare(table: Table, then: Then, what: str, **request: int) -> None:
    with goes_well(what):
        found = table.read(**request)
    names = columns(found.schema)
    assert found.schema.equals(then.rows.schema), f"{what}: expected {columns(then.rows.schema)}, found {names}"
    expect(found.sort_by("id"), then.rows, f"{what}: the rows are those of then")
    last = then.rows.schema.names[-1]
    null = Leaf(last, Op.IS_NULL)
    compare(table, then.rows, [null, Not(null), Leaf("count", Op.EQ, 7), Leaf("id", Op.GE, 1)], **request)


def _added(table: Table) -> None:
    table.lake.storage.catalog().alter_table(table.path, [ADDED])
    rows = pa.record_batch([pa.array([8]), pa.array(["n"]), pa.array([1], pa.int32()), pa.array([3])], schema=_after())
    table.publish_arrow([rows], token(1))


def _after() -> pa.Schema:
    return FIRST.append(pa.field("more", pa.int64()))


def _replaced(table: Table) -> None:
    table.round(token(1), [], WriteMode.OVERWRITE)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_added, marks=pytest.mark.needs(Feature.ADD_COLUMN), id="added"),
        pytest.param(_replaced, marks=pytest.mark.needs(Feature.OVERWRITE), id="overwritten"),
    ],
)
def test_a_plan_of_before_is_read_as_it_was_made(lake: Lake, change: Callable[[Table], None]) -> None:
    """Its splits travel, and are read by another source, when the table has changed already."""
    table = lake.create(FIRST, "db.grown")
    rows = pa.record_batch([pa.array([1, 2]), pa.array(["a", None]), pa.array([None, 2], pa.int32())], schema=FIRST)
    table.publish_arrow([rows], token(0))
    source = pickle.loads(pickle.dumps(table.source))  # noqa: S301 - as Spark does
    plan = source.plan(ScanRequest())
    messages = [pack(source.split_serializer, split) for split in plan.splits]
    change(table)
    sent = replace(plan, splits=tuple(unpack(source.split_serializer, message) for message in messages))
    expected = pa.Table.from_batches([rows])
    for told, reader, what in (("another", table.source, sent), ("its own", source, plan)):
        found = read_pinned(reader, what, lake.plugin.features)
        if found is not None:
            expect(found.sort_by("id"), expected, f"a plan is read by {told} source after the table changed")
