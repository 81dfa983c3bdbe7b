"""Each effect of a round in turn: it is cut off, fails, or has a rival, wherever it could have. Operations that are no
append are in test_operations.

Nobody has to name these steps: the kernel does. Where it can't, these tests are skipped, and the verdict says so.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Container, Iterator
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import AddColumn, DeliveryLevel, Feature, support_of
from laketier.tiering import RoundOutcome
from laketier_conformance.children import Child, Patience
from laketier_conformance.delivery import ids_until, made_whole, not_absent, own, publish_of, replay, round_of
from laketier_conformance.expect import expect, told
from laketier_conformance.interposed.deciding import Run
from laketier_conformance.interposed.disk import SYNCS, WRITES
from laketier_conformance.interposed.files import TWICE as CHANGES_OF_NAMES
from laketier_conformance.interposed.powercuts import PowerCuts
from laketier_conformance.interposed.runs import (
    Interposed,
    done_twice_at_each,
    failed_at_each,
    filled_at_each,
    halved_at_each,
    interrupted_at_each,
    killed_at_each,
    lost_at_each,
    reset_at_each,
    rivalled_at_each,
)
from laketier_conformance.interposed.supervisor import INTERRUPT
from laketier_conformance.lake import Table, ids_of

Take = Callable[[int], list[Child]]

RIVALS = 900_000
ANSWERS = (
    *("Conflict", "SchemaChanged", "StagedFileLost", "TableChanged", "TableNotFound", "WatermarkLost"),
    *("IncompatibleData", "UnstorableRows"),
)
"""Errors that say how the table is, or the rows. A step that failed does not know."""
CONTAINED = "both in containers, where each process has the number 1"
LOST = 0
"""No error of a step: its answer is lost."""


def _made_whole(table: Table, epoch: int, told: str, seen: list[int] | None = None) -> None:
    """The epoch is there or not, as the delivery level has it, and the replay knows."""
    made_whole(table, epoch, ids_until(epoch), ids_until(epoch + 1), lambda: replay(table, epoch), told, seen)


def test_a_round_is_killed(table: Table, runs: Interposed) -> None:
    """Of one task: the effects of another are the same again. Before the round is run again another pipeline commits
    nothing, or a new column comes, after each third kill: what the dead one left by then is no part of that."""
    catalog = table.lake.storage.catalog()
    known, rows = catalog.table_version(table.path), table.ids
    for epoch, run in enumerate(killed_at_each(runs, round_of)):
        told = runs.told(run, "killed before")
        still = known is not None and catalog.table_version(table.path, known) == known
        seen = table.ids
        assert not still or seen == rows, (
            f"{told}: who knew a version of the table is told that it is the newest, and it has other rows: expected "
            f"another version or None, and found rows {seen} where {rows} were before"
        )
        if epoch % 3 == 1:
            table.append(epoch // 3, [], pipeline="idle")
            told = f"{told}, and another pipeline's epoch without rows came before the replay"
        elif epoch % 3 == 2 and table.lake.declares(Feature.ADD_COLUMN):
            catalog.alter_table(table.path, [AddColumn(pa.field(f"c{epoch}", pa.int64()))])
            told = f"{told}, and a new column came before the replay"
        _made_whole(table, epoch, told, None if epoch % 3 else seen)
        known, rows = catalog.table_version(table.path), ids_until(epoch + 1)


def test_a_replay_is_killed(table: Table, runs: Interposed) -> None:
    """It stages again, finds its epoch there, and dies while it tidies up."""
    replay(table, 0)
    for run in killed_at_each(runs, lambda _: round_of(0)):
        expect(table.ids, ids_until(1), f"{runs.told(run, 'killed before')}, in a replay: the rows")
    expect(replay(table, 1), RoundOutcome.PUBLISHED, "the outcome of the next epoch after replays were killed")
    expect(table.ids, ids_until(2), "rows after the next epoch")


def _stands_for_no_error(answer: dict[str, Any], told: str) -> None:
    said = answer.get("refused")
    assert said not in ANSWERS, (
        f"{told}: the round ended in {said}, and that was not to be seen: expected an error of the storage, and found "
        f"{answer.get('message')!r}"
    )


def test_an_effect_of_a_round_fails(table: Table, runs: Interposed, cuts: PowerCuts) -> None:
    """With an input/output error, or the end of a connection: the round survives it, or says that it failed. After a
    sync that failed, another one has nothing to do: the system takes the bytes for written."""
    for epoch, run in enumerate(failed_at_each(runs, lambda epoch: {"disk": cuts.restart(), **round_of(epoch)})):
        told = runs.told(run, "a reset of the connection before" if run.decided.is_send else f"{run.failed_with} from")
        assert run.answer is not None, f"{told}: the process died"
        _stands_for_no_error(run.answer, told)
        seen: list[int] | None = table.ids
        if "outcome" in run.answer:
            expect(seen, ids_until(epoch + 1), f"{told}: the round of epoch {epoch} was acknowledged, and the rows")
            if run.decided.call in SYNCS and not cuts.cannot:
                left, seen = cuts.survivors("db.t", epoch), None
                expect(left, ids_until(epoch + 1), f"{told}: the round was answered, then the power was cut: the rows")
        _made_whole(table, epoch, told, seen)


@pytest.mark.parametrize(
    ("error", "only", "known"),
    [
        (errno.EIO, None, True),
        (errno.ETIMEDOUT, CHANGES_OF_NAMES, True),
        (errno.EACCES, CHANGES_OF_NAMES, False),
        (LOST, None, True),
        (INTERRUPT, CHANGES_OF_NAMES, True),
    ],
    ids=["error", "time-out", "denied", "lost", "interrupt"],
)
def test_an_error_of_an_effect_is_no_conflict(
    table: Table,
    runs: Interposed,
    error: int,
    only: Container[str] | None,
    known: bool,
    unproven: Callable[[str, str], None],
) -> None:
    """Each effect of a bare publish fails, each change of a name times out, is denied or is the last thing before
    Ctrl-C, and nobody else commits. So publish answers and has landed, once, or raises an error from which nobody can
    tell: a conflict or a refusal would say that its files may be deleted. Before its effect it may say that this has
    not begun, and then nothing is there. The one that is denied is of no pipeline, as a batch is. Of what is sent the
    answer is lost, too: a request that is sent again meets its own commit, and is told that the table has moved on. Who
    is interrupted ends as if he was killed: what has landed stays."""
    staged: dict[int, list[int]] = {}

    def publish(number: int) -> dict[str, Any]:
        staged[number] = ids_of(number)
        return {**publish_of(table, number), "batch": not known, "interrupted": error == INTERRUPT}

    rows: list[int] = []
    exactly_once = table.lake.plugin.delivery is DeliveryLevel.EXACTLY_ONCE
    commits = _commits(table)
    for number, (happened, run) in enumerate(_came_upon(runs, publish, error, only)):
        told = happened
        assert run.answer is not None or error == INTERRUPT, f"{told}: the process died"
        answered = run.answer or {"failed": "nothing, and ended"}
        said, found = answered.get("failed", ""), _ids(table, told)
        whole = rows + staged[number]
        assert not answered.get("certain"), f"{told}, and no other commit came: publish said {said}{own(found, whole)}"
        assert found in (rows, whole) or not exactly_once, f"{told}: a part is there: found {found}"
        not_absent(answered, staged[number], found, told)
        # Where rows come before the watermark, those of a publish that failed leave with the next one.
        landed = found == whole if exactly_once else {*staged[number]} <= {*found}
        assert said or landed, f"{told}: publish told of a success, and it did not land: found {found}"
        rows = found
        before, commits = commits, _commits(table)
        if exactly_once and before is not None and commits is not None:
            expect(commits - before, int(landed), f"{told}: commits of one publish")
        mark = table.watermark()
        if exactly_once and known:
            epoch = None if mark is None else mark.token.epoch
            assert (epoch == number) is landed, f"{told}: rows {found}, and the watermark is of epoch {epoch}"
    last, found = max(staged), table.ids
    if exactly_once:
        expect(found, rows + staged[last], "rows after a publish that nothing came upon, behind those that failed")
    else:
        assert {*staged[last]} <= {*found}, f"rows of a publish that nothing came upon are there: found {found}"
    if len(staged) == 1 and error != LOST:
        unproven("errors of effects that are no conflict", "the kernel saw no such call of a publish")


def _came_upon(
    runs: Interposed, publish: Callable[[int], dict[str, Any]], error: int, only: Container[str] | None
) -> Iterator[tuple[str, Run]]:
    """Each run, and what came upon it."""
    if error == LOST:
        yield from ((runs.told(run, "the answer was lost after"), run) for run in lost_at_each(runs, publish))
    elif error == INTERRUPT:
        yield from ((runs.told(run, "Ctrl-C after"), run) for run in interrupted_at_each(runs, publish))
    else:
        for run in failed_at_each(runs, publish, error, only):
            yield runs.told(run, f"{run.failed_with if error == errno.EIO else errno.errorcode[error]} from"), run


def _ids(table: Table, happened: str) -> list[int]:
    try:
        return table.ids
    except Exception as error:  # noqa: BLE001 - reported
        pytest.fail(f"{happened}: the table can't be read any more: {told(error)}")


def _commits(table: Table) -> int | None:
    """So many are in the history; None where there is none."""
    known = support_of(table.lake.plugin.features, Feature.HISTORY).full
    return len(table.history.snapshots(1_000)) if known else None


def test_a_rival_before_each_effect(table: Table, children: Take, runs: Interposed) -> None:
    """Another pipeline publishes while a round waits before one of its effects; where a lock keeps it from that, the
    round goes on first. Both drivers are in containers, where each process has the number 1."""
    rivals: list[Child] = []
    came, patience = 0, Patience()

    def rivalled(epoch: int) -> dict[str, Any]:
        meanwhile = {"meanwhile": lambda: rivals.append(_rival(table, children, came, patience))}
        return {**meanwhile, "contained": True, **round_of(epoch)}

    for epoch, run in enumerate(rivalled_at_each(runs, rivalled)):
        told = f"{runs.told(run, 'a rival came before')}, {CONTAINED}"
        while rivals:
            rival = rivals.pop()
            answer = rival.answer()
            rival.stop()
            came += 1
            assert "outcome" in answer, f"{told}: the rival's round ended with {answer}"
        assert "outcome" in (run.answer or {}), f"{told}: the round ended with {run.answer}"
        seen = table.ids
        expect([i for i in seen if i < RIVALS], ids_until(epoch + 1), f"{told}: rows of the round beside a rival's")
        theirs = [i - RIVALS for i in seen if i >= RIVALS]
        expect(theirs, list(range(came)), f"{told}: rows of the rival")


def test_a_driver_of_the_same_epoch_before_each_effect(table: Table, children: Take, runs: Interposed) -> None:
    """Of a pipeline that was started twice, or whose driver was taken for dead: one of the two publishes, wherever the
    other one waits, and that one finds the epoch there. A look at the table that is not made again under the lock lets
    both pass. Both are in containers, as above."""
    twins: list[Child] = []
    patience = Patience()

    def twin(epoch: int) -> None:
        (other,) = children(1)
        twins.append(other)
        other.begin(table.lake, contained=True, **round_of(epoch))
        patience.came(other)

    def twinned(epoch: int) -> dict[str, Any]:
        return {"meanwhile": lambda: twin(epoch), "contained": True, **round_of(epoch)}

    for epoch, run in enumerate(rivalled_at_each(runs, twinned, but=(*SYNCS, *WRITES))):
        told = f"{runs.told(run, 'another driver of the same epoch came before')}, {CONTAINED}"
        outcomes = [(run.answer or {}).get("outcome")]
        while twins:
            other = twins.pop()
            outcomes.append(other.answer().get("outcome"))
            other.stop()
        seen = _ids(table, f"{told}, and the two ended with {outcomes}")
        expect(seen, ids_until(epoch + 1), f"{told}: rows of an epoch of two drivers, which ended with {outcomes}")


def _rival(table: Table, children: Take, epoch: int, patience: Patience) -> Child:
    (rival,) = children(1)
    theirs = {"pipeline": "rival", "epoch": epoch, "tasks": [[RIVALS + epoch]]}
    rival.begin(table.lake, "round", table="db.t", contained=True, **theirs)
    patience.came(rival)
    return rival


def test_an_answer_is_lost(table: Table, runs: Interposed) -> None:
    """What a round sends lands, and the connection ends before its answer is there: the round finds out what became of
    it, or says that it failed. A format that sends nothing has no such answer."""
    lost = 0
    for epoch, run in enumerate(lost_at_each(runs, round_of)):
        lost += run.lost
        told = runs.told(run, "the answer was lost after")
        assert run.answer is not None, f"{told}: the process died"
        _stands_for_no_error(run.answer, told)
        seen = table.ids
        if "outcome" in run.answer:
            expect(seen, ids_until(epoch + 1), f"{told}: the round of epoch {epoch} was acknowledged, and the rows")
        _made_whole(table, epoch, told, seen)
    if runs.sight.peers and not lost:
        runs.sight.unseen[f"answers of {', '.join(runs.sight.peers)}: none could be taken away"] = None


def test_a_request_of_a_replay_fails(table: Table, runs: Interposed) -> None:
    """Of the pipeline's first epoch: whoever takes an error for "it never published" makes its rows twice."""
    replay(table, 0)
    for run in reset_at_each(runs, lambda _: round_of(0)):
        told = runs.told(run, "a reset of the connection before")
        expect(table.ids, ids_until(1), f"{told}, in a replay: the rows")
        assert run.answer is not None, f"{told}, in a replay: the process died"
        _stands_for_no_error(run.answer, f"{told}, in a replay")


ODD = {halved_at_each: "a short write at", done_twice_at_each: "done twice:", filled_at_each: "ENOSPC from the end of"}


@pytest.mark.parametrize("how", ODD, ids=["a-short-write", "done-twice", "a-disk-that-fills-up"])
def test_a_file_system_is_odd(table: Table, runs: Interposed, how: Callable[..., Iterator[Run]]) -> None:
    """A write is short, as its result says. A rename, link or removal finds itself done, as on a mounted file system
    that sent a request again: "exists" or "not found" is no proof that another one did it. The disk is full when the
    last bytes of a file are written, as it is closed, so a close that fails is no success."""
    for epoch, run in enumerate(how(runs, round_of)):
        told = runs.told(run, ODD[how])
        assert run.answer is not None, f"{told}: the process died"
        seen = _ids(table, told)
        if "outcome" in run.answer:
            expect(seen, ids_until(epoch + 1), f"{told}: the round of epoch {epoch} was acknowledged, and the rows")
        _made_whole(table, epoch, told, seen)
