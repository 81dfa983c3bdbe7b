"""The power is cut: what a local disk then holds of names and bytes that were not synced, and what a table makes of it.

The suite plays it on the calls that a process made, seen by the kernel. Stores on the network promise durability
themselves: in a warehouse that is none of a local disk, there is nothing to cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from laketier.spi import (
    AddColumn,
    Feature,
    LakeStoragePlugin,
    LaketierError,
    PartitionField,
    SchemaChange,
    WidenColumn,
    support_of,
)
from laketier.tiering import RoundOutcome
from laketier_conformance.delivery import round_of
from laketier_conformance.expect import expect
from laketier_conformance.interposed.disk import SYNCS
from laketier_conformance.interposed.powercuts import PowerCut, PowerCuts
from laketier_conformance.interposed.runs import TooManySteps, spread
from laketier_conformance.interposed.supervisor import KILL
from laketier_conformance.lake import SCHEMA, Lake, Table, batch, ids_of, token
from laketier_conformance.seen import seen
from laketier_conformance.suite import REFUSED
from laketier_conformance.weigh import MANY

Unproven = Callable[[str, str], None]
EPOCHS = 2
LAST = 4
SPREAD = 16
"""Moments of a creation at which it is killed."""
LEVELS = ("name", "id")
NUMBERED = SCHEMA.append(pa.field("n", pa.int32()))
TASKS = ([[3, 4], [5]], [[10, 11], [12]])
"""Of two rounds, ids 3 and 10 have a partition in common, and each id has one below it."""


def _made_and_filled(cuts: PowerCuts) -> None:
    answers = [cuts.ask("make", table="db.t", cut=True).answer]
    answers += [cuts.ask(**round_of(epoch), cut=epoch == EPOCHS - 1).answer for epoch in range(EPOCHS)]
    assert len(cuts.requests) == len(answers), f"a table is made and filled: {answers}"


def _rows(epochs: int) -> list[int]:
    return [i for epoch in range(epochs) for i in ids_of(epoch)]


def _expected(answered: int) -> list[int] | None:
    """All rows after so many requests, the first of which made the table; None where there is none."""
    return None if answered == 0 else _rows(answered - 1)


def _judge(cuts: PowerCuts, some: list[PowerCut], *, is_answered: bool, before: str = "") -> None:
    some = [replace(cut, told=f"{before}{cut.told}") for cut in some]

    def recover(cut: PowerCut) -> dict[str, Any]:
        # The epoch whose answer is lost, or came last.
        return {"do": "recover", "table": "db.t", "epoch": max(0, cut.answered - 1 - is_answered)}

    for cut, answer in zip(some, cuts.left_by(some, recover), strict=True):
        epoch = recover(cut)["epoch"]
        assert "outcome" in answer, (
            f"{cut.told}: the table can't be read, or the replay of epoch {epoch} fails: {answer}"
        )
        seen, allowed = answer["seen"], [_expected(cut.answered)] + [_expected(cut.answered + 1)] * (not is_answered)
        assert seen in allowed, f"{cut.told}: {_told(seen)}, and what was answered before is {_told(allowed[0])}"
        _judge_past(cut, answer["past"], is_answered=is_answered)
        landed = seen == _rows(epoch + 1)
        expected = RoundOutcome.ALREADY_THERE if landed else RoundOutcome.PUBLISHED
        expect(answer["outcome"], expected.value, f"{cut.told}: epoch {epoch} is replayed")
        expect(answer["after"], _rows(epoch + 1), f"{cut.told}: the table has all rows after the replay")


def _judge_past(cut: PowerCut, past: list[list[int]], *, is_answered: bool) -> None:
    """Older snapshots, of a format that has some, hold what they held."""
    states = [_rows(epochs) for epochs in range(cut.answered + (not is_answered))]
    odd = [ids for ids in past if ids not in states]
    assert not odd, f"{cut.told}: an older snapshot has the ids {odd[0]}, and the table never held these"
    lost = [ids for ids in states[1 : cut.answered] if past and ids not in past]
    assert not lost, f"{cut.told}: the snapshot with the ids {lost[0]} is not there any more"


def _told(ids: list[int] | None) -> str:
    return "no table is there" if ids is None else f"a table with the ids {ids}"


def test_what_was_answered_survives(cuts: PowerCuts) -> None:
    """Creating a table and each round are durable once they are answered. So is the second round of a process, which
    may know of the folders that it synced before."""
    answers = [cuts.ask("make", table="db.t").answer, cuts.ask(**round_of(0)).answer]
    answers.append(cuts.ask(**round_of(2), earlier=1).answer)
    assert len(cuts.requests) == len(answers), f"a table is made and filled: {answers}"
    of_both = [replace(cut, answered=cut.answered + 1) for cut in cuts.after if cut.answered == len(answers)]
    _judge(cuts, [cut for cut in cuts.after if cut.answered < len(answers)] + of_both, is_answered=True)


@pytest.mark.usefixtures("table")
def test_each_file_of_a_large_task_survives(cuts: PowerCuts, lake: Lake, unproven: Unproven) -> None:
    """A writer that begins a new file when one is large syncs each of them, not the last one alone. A database that
    changes its pages in their places, and notes each before, takes too many steps to look at."""
    try:
        answer = cuts.ask("round_of_many", table="db.t", epoch=0, alone=False).answer
    except TooManySteps:
        unproven("power cuts after a large task", "it takes more steps than the suite looks at")
        return
    expect(answer, {"outcome": RoundOutcome.PUBLISHED.value, "rows": MANY}, f"a task of {MANY} rows is published")
    cut = cuts.after[-1]
    cuts.put_back(cut.tree)
    told = f"a task of {MANY} rows was published; {cut.told}"
    try:
        ids = lake.table("db.t").read(columns=("id",))["id"]
    except LaketierError as error:
        pytest.fail(f"{told}: the table can't be read: {error}")
    found = (len(ids), pc.count_distinct(ids).as_py())
    expect(found, (MANY, MANY), f"{told}: the rows that a reader finds, and how many are different")


@pytest.mark.needs(Feature.PARTITIONING)
def test_partitions_survive(cuts: PowerCuts, lake: Lake) -> None:
    """A round puts files into new folders in new folders, and into old ones. Each is a name in the one above it."""
    lake.create(name="db.other", partition_by=tuple(map(PartitionField, LEVELS)))  # a format without them refuses here
    cuts.restart()
    named: dict[str, Any] = {"table": "db.t", "partition_by": LEVELS}
    cuts.ask("make", **named)
    for epoch, tasks in enumerate(TASKS):
        answer = cuts.ask("round", table="db.t", pipeline="p", epoch=epoch, tasks=tasks).answer
        assert "outcome" in (answer or {}), f"a round of a partitioned table ended with {answer}"

    def recover(cut: PowerCut) -> dict[str, Any]:
        return {"do": "recover", "epoch": max(0, cut.answered - 2), **named}

    for cut, answer in zip(cuts.after, cuts.left_by(cuts.after, recover), strict=True):
        assert "outcome" in answer, f"{cut.told}: the partitioned table can't be read, or written: {answer}"
        rows = sorted(i for tasks in TASKS[: cut.answered - 1] for ids in tasks for i in ids)
        expect(answer["seen"], rows, f"{cut.told}: a reader finds the ids")
        if rows:
            expect(answer["outcome"], RoundOutcome.ALREADY_THERE.value, f"{cut.told}: the last epoch is replayed")


@pytest.mark.needs(Feature.INDEXING)
def test_indexes_survive(cuts: PowerCuts, lake: Lake) -> None:
    """A published index answers, and a dropped one does not come back."""
    table = lake.create()
    lake.storage.indexer(table.info)  # a format without it refuses here
    for epoch in range(EPOCHS):
        table.append(epoch)
    named: dict[str, Any] = {"table": "db.t", "name": "of_id"}
    for do in ("index", "drop_index"):
        cuts.restart()
        answer = cuts.ask(do, **named).answer
        assert {"rows", "dropped"} & (answer or {}).keys(), f"a request to {do} ends with {answer}"
        after = seen(lake, "db.t")
        expect("indexes" in (after or {}), do == "index", f"a table has an index after a request to {do}")
        finish = {"do": "finish", "table": "db.t", "after": after, "repeats": False, "then": {}}
        left = cuts.left_by(cuts.after, partial(_asks, finish))
        for cut, found in zip(cuts.after, left, strict=True):
            assert "seen" in found, f"{cut.told}: the table can't be read: {found}"
            expect(found["seen"], after, f"{cut.told}: a reader finds")


def _asks(request: dict[str, Any], _: PowerCut) -> dict[str, Any]:
    return request


def test_a_creation_makes_durable_what_it_finds(cuts: PowerCuts) -> None:
    """It is killed before one of its syncs. Who looks then finds an empty table, or none: a driver that is told of an
    error there makes none, ever. Who asks again finds a table, or folders for one, and answers for them."""
    nothing = cuts.now
    syncs = len(cuts.ask("make", table="db.t", only=SYNCS, decided=KILL).steps)
    for at in spread(syncs, SPREAD, 0):
        cuts.put_back(nothing)
        cuts.ask("make", table="db.t", at=at, decided=KILL, only=SYNCS)
        again = cuts.ask("make", table="db.t", alone=False, looks=True).answer
        killed = f"a creation was killed before its sync number {at + 1} of {syncs}, and "
        before = f"{killed}asked for again; "
        assert "uuid" in (again or {}), f"{killed}who looks for the table, and then asks for it again, is told {again}"
        rows = ((again or {})["seen"] or {"rows": []})["rows"]
        expect(rows, [], f"{killed}a reader finds the rows")
        _judge(cuts, cuts.after, is_answered=True, before=before)


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        pytest.param(
            AddColumn(pa.field("m", pa.int64())),
            {"columns": ["m"]},
            id="new-column",
            marks=pytest.mark.needs(Feature.ADD_COLUMN),
        ),
        pytest.param(
            WidenColumn("n", pa.int64()), {"widen": ["n"]}, id="wider-type", marks=pytest.mark.needs(Feature.WIDEN_TYPE)
        ),
    ],
)
def test_a_change_that_is_found_is_made_durable(
    cuts: PowerCuts, lake: Lake, change: SchemaChange, asked: dict[str, Any]
) -> None:
    """Who makes it is killed before one of the last syncs. Who asks again finds it, and answers for it."""
    lake.storage.catalog().alter_table(lake.create(NUMBERED, "db.other").path, [change])
    columns = [batch(ids_of(0)).column(name) for name in SCHEMA.names] + [pa.array(range(5), pa.int32())]
    table = lake.create(NUMBERED)
    table.publish_arrow([pa.record_batch(columns, schema=NUMBERED)], token(0))
    cuts.restart()
    before = cuts.now
    alter: dict[str, Any] = {"do": "alter", "table": "db.t", "columns": [], **asked}
    syncs = len(cuts.ask(**alter, only=SYNCS, decided=KILL).steps)
    changed = _read(table)
    for at in range(syncs)[-LAST:]:
        cuts.put_back(before)
        cuts.ask(**alter, at=at, decided=KILL, only=SYNCS)
        again = cuts.ask(**alter, alone=False).answer
        told = f"a change of columns was killed before its sync number {at + 1} of {syncs}, and asked for again"
        assert "columns" in (again or {}), f"{told}: it ended with {again}"
        cut = cuts.after[-1]
        cuts.put_back(cut.tree)
        expect(_read(table), changed, f"{told}; {cut.told}: the columns and the rows that a reader finds")


def _read(table: Table) -> tuple[dict[str, str], list[dict[str, Any]]]:
    try:
        columns = {field.name: str(field.type) for field in table.info.schema}
        return columns, sorted(table.read().to_pylist(), key=lambda row: int(row["id"]))
    except LaketierError as error:
        return {"the table can't be read": str(error)}, []


@pytest.mark.shows(Feature.POWER_CUT)
def test_nothing_is_torn(cuts: PowerCuts, plugin: LakeStoragePlugin, request: pytest.FixtureRequest) -> None:
    """Wherever it comes, the step that was under way is there as a whole, or not at all. A format whose library can't
    give that has to say so by name: silence is no declaration here."""
    if Feature.POWER_CUT in plugin.features and not support_of(plugin.features, Feature.POWER_CUT).full:
        request.node.user_properties.append((REFUSED, Feature.POWER_CUT.value))
        return
    _made_and_filled(cuts)
    _judge(cuts, cuts.within, is_answered=False)


@pytest.mark.usefixtures("table")
def test_a_replay_makes_durable_what_it_finds(cuts: PowerCuts) -> None:
    """A round is killed before each of its last syncs, which are those of what it publishes. The replay answers for it,
    and has to sync what it found."""
    syncs = len(cuts.ask(**round_of(0), only=SYNCS, decided=KILL).steps)
    for epoch, at in enumerate(range(syncs)[-LAST:], start=1):
        cuts.restart()
        cuts.ask(**round_of(epoch), at=at, decided=KILL, only=SYNCS)
        replay = cuts.ask(**(round_of(epoch) | {"do": "replay"}))
        told = f"a round was killed before its sync number {at + 1} of {syncs}, and replayed"
        assert "outcome" in (replay.answer or {}), f"{told}: the replay ended with {replay.answer}"
        expect(cuts.survivors("db.t", epoch), _rows(epoch + 1), f"{told}; then the power was cut")
