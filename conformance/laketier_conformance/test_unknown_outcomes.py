"""An answer that is lost: the table tells what happened, and nothing is deleted before it did."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from laketier.kit import FailpointError
from laketier.kit import failpoints as failpoints_of_kit
from laketier.spi import (
    AddColumn,
    Conflict,
    DeliveryLevel,
    Feature,
    LaketierError,
    NotBegun,
    Refused,
    UnknownOutcome,
    Watermark,
    WriteMode,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.failpoints import CountedFailpoints
from laketier_conformance.lake import QUICK, Table, ids_of, token


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_the_effect_landed_and_the_answer_was_lost(table: Table, failpoints: CountedFailpoints, known: bool) -> None:
    table.append(0, pipeline="before")
    failpoints.switch_on("publish.after=error@1")
    result = table.round(token(0) if known else None, [ids_of(1, 0), ids_of(1, 1)])
    expect(
        (result.outcome, result.rows), (RoundOutcome.RECOVERED, 10), "outcome and rows of a round whose answer was lost"
    )
    expect(table.ids, ids_of(0) + ids_of(1, 0) + ids_of(1, 1), "rows of a round whose answer was lost")


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
@pytest.mark.parametrize("attempts", [1, 3])
def test_the_effect_landed_and_was_called_a_conflict(
    table: Table, monkeypatch: pytest.MonkeyPatch, known: bool, attempts: int
) -> None:
    """A transport that repeats a request is told that the name is taken: by its own. The table knows better, through
    the watermark or through `TableState.landed`; nothing is doubled, and no live file deleted."""
    committer = type(table.committer())
    publish = committer.publish

    def misunderstood(self: Any, *arguments: Any) -> None:
        publish(self, *arguments)
        raise Conflict("another commit came first")

    table.append(0, pipeline="before")
    monkeypatch.setattr(committer, "publish", misunderstood)
    factory = table.factory
    tiering = TieringRound(factory, token=token(0) if known else None, policy=replace(QUICK, conflicts=attempts))
    result = tiering.commit_messages([table.stage(ids_of(1, 0), 0, factory), table.stage(ids_of(1, 1), 1, factory)])
    expect(
        (result.outcome, result.rows),
        (RoundOutcome.RECOVERED, 10),
        "outcome and rows of a round that landed and was told of a conflict",
    )
    expect(table.ids, ids_of(0) + ids_of(1, 0) + ids_of(1, 1), "rows of a round that landed and was told of a conflict")


def test_a_recovered_epoch_is_not_replayed(table: Table, failpoints: CountedFailpoints) -> None:
    failpoints.switch_on("publish.after=error@1")
    table.append(0)
    failpoints.switch_on("")
    expect(
        table.append(0).outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of an epoch that is run again after it was recovered",
    )
    expect(table.append(1).outcome, RoundOutcome.PUBLISHED, "the outcome of the epoch after one that was recovered")
    expect(table.ids, ids_of(0) + ids_of(1), "rows of epochs of which one was recovered")


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_an_error_before_the_effect(table: Table, failpoints: CountedFailpoints, known: bool) -> None:
    failpoints.switch_on("publish.before=error@1")
    result = table.round(token(0) if known else None, [ids_of(0)])
    expect(
        result.outcome, RoundOutcome.PUBLISHED, "the outcome of a round whose first attempt failed before its effect"
    )
    expect(table.ids, ids_of(0), "rows of a round whose first attempt failed before its effect")
    # What was not there when it was looked for first is there the next time.
    failpoints.switch_on("publish.before=error@1;publish.after=error@1")
    told = "a round whose first attempt failed before its effect, and whose second one landed without an answer"
    with goes_well(told):
        result = table.round(token(1) if known else None, [ids_of(1)])
    failpoints.switch_on("")
    expect(result.outcome, RoundOutcome.RECOVERED, f"the outcome of {told}")
    expect(table.ids, ids_of(0) + ids_of(1), f"rows of {told}")


def test_an_error_that_stays_is_raised(table: Table, failpoints: CountedFailpoints) -> None:
    """It is neither swallowed nor taken for a success, and what was staged can still be published later."""
    staged = table.staged(ids_of(0))
    failpoints.switch_on("publish.before=error")
    with refused(UnknownOutcome, "a round is committed whose every attempt fails"):
        table.commit([staged], token(0))
    failpoints.switch_on("")
    expect(table.ids, [], "rows after each attempt of a round failed")
    expect(
        table.commit([staged], token(0)).outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of a round whose files were kept after each attempt failed",
    )
    expect(table.ids, ids_of(0), "rows of a round whose files were kept after each attempt failed")


def test_an_abort_after_a_commit_that_landed(table: Table, failpoints: CountedFailpoints) -> None:
    """Spark calls abort with every message when the answer of a commit was lost."""
    results = [table.staged(ids_of(0, 0)), table.staged(ids_of(0, 1))]
    tiering = TieringRound(table.factory, token=token(0), policy=QUICK)
    failpoints.switch_on("ack.before=error")
    with refused(FailpointError, "a round is committed whose answer is lost on the way to Spark"):
        tiering.commit(results)
    failpoints.switch_on("")
    TieringRound(table.factory, token=token(0)).abort(results, commit_was_called=True)
    expect(table.ids, ids_of(0, 0) + ids_of(0, 1), "rows after Spark aborted a round that had landed")


def test_an_error_at_each_failpoint_of_the_format(table: Table, failpoints: CountedFailpoints) -> None:
    """Each step of the format's own fails once. The round ends in success or in an error; a replay makes it whole."""
    failpoints.record()
    table.append(0)
    steps = failpoints.own
    failpoints.forget()
    for epoch, step in enumerate(steps, start=1):
        failpoints.switch_on(f"{step}=error@1")
        acknowledged = False
        with contextlib.suppress(FailpointError, LaketierError):
            table.append(epoch)
            acknowledged = True
        failpoints.switch_on("")
        assert not acknowledged or table.ids == _whole(epoch), f"an error at {step} was swallowed"
        assert table.append(epoch).outcome in (RoundOutcome.PUBLISHED, RoundOutcome.ALREADY_THERE), (
            f"an error at {step}: the replay of epoch {epoch} is published, or finds its epoch there"
        )
        expect(table.ids, _whole(epoch), f"an error at {step}: rows of the replay")


def test_what_comes_between_an_error_and_the_replay(table: Table, failpoints: CountedFailpoints) -> None:
    """Each step of the format's own fails for good, and before the round is run again another pipeline commits nothing,
    or somebody changes the columns. What the round had left by then is no part of that."""
    failpoints.record()
    table.append(0)
    steps = failpoints.own
    failpoints.forget()

    def nothing(number: int) -> None:
        table.append(number - 1, [], pipeline="idle")

    def change(number: int) -> None:
        table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field(f"more_{number}", pa.int64()))])

    comes: dict[str, Callable[[int], None]] = {"another pipeline's epoch without rows": nothing}
    if table.lake.declares(Feature.ADD_COLUMN):
        comes["a new column"] = change
    done = 0
    for what, act in comes.items():
        for number, step in enumerate(steps, start=1):
            done += 1
            failpoints.switch_on(f"{step}=error")
            with contextlib.suppress(FailpointError, LaketierError):
                table.append(done)
            failpoints.switch_on("")
            act(number)
            told = f"a round failed at {step}, {what} came, and the round was run again"
            with goes_well(told):
                table.append(done)
            expect(table.ids, _whole(done), f"rows after {told}")


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_a_time_out_is_no_conflict(table: Table, known: bool, unproven: Callable[[str, str], None]) -> None:
    """Each step of the format's own times out once. Nobody else commits, so none of them is a conflict or a refusal:
    publish tells of a success that is there, or raises an error from which nobody can tell. Before its effect it may
    say that this has not begun, and then nothing is there."""
    steps: list[str] = []
    _attempt(table, 0, known, steps.append)
    if not steps:
        unproven("time-outs within publish", "the format's publish passes no failpoint")
    whole = ids_of(0)
    for number, step in enumerate(dict.fromkeys(steps), start=1):
        said, landed, absent = _attempt(table, number, known, _timing_out(step))
        told = f"a time-out at {step}, of which publish said {said}"
        assert landed or said != "nothing", f"{told}: it told of a success, and the commit did not land"
        begun = table.ids == whole + ids_of(number) and table.lake.plugin.delivery is not DeliveryLevel.EXACTLY_ONCE
        is_there = "the commit did" if landed else "its rows are there" if begun else ""
        assert not (is_there and absent), f"{told}: it is certain that nothing landed, and {is_there}"
        whole += ids_of(number) if landed or begun else []
        expect(table.ids, whole, f"rows after {told}")


def _attempt(table: Table, number: int, known: bool, observer: Callable[[str], None]) -> tuple[str, bool, bool]:
    """What a bare publish said, whether it landed, and whether it said that it has not begun."""
    commit = new_attempt_id()
    committer = table.committer(commit_id=commit)
    state, staged, said, absent = committer.open(), table.staged(ids_of(number)), "nothing", False
    before = _commits(table)
    mark = Watermark(token(number), commit) if known else None
    try:
        with failpoints_of_kit.observed(observer):
            committer.publish(state, [staged], mark)
    except Exception as error:  # noqa: BLE001 - any but these says that the outcome is unknown
        said, absent = type(error).__name__, isinstance(error, NotBegun)
        certain = isinstance(error, Conflict | Refused)
        assert not certain, f"a step of publish timed out and no other commit came: publish said {said}"
    landed: bool = committer.open().landed(commit)
    committer.close()
    expect(_commits(table) - before, int(landed and before >= 0), "commits of one publish, a step of which timed out")
    return said, landed, absent


def _commits(table: Table) -> int:
    """So many are in the history; -1 where there is none."""
    known = table.lake.declares(Feature.HISTORY)
    return len(table.history.snapshots(1_000)) if known else -1


def _timing_out(step: str) -> Callable[[str], None]:
    still = [step]

    def observer(name: str) -> None:
        if name in still:
            still.remove(name)
            raise TimeoutError("no answer")

    return observer


def _whole(epoch: int) -> list[int]:
    return [i for e in range(epoch + 1) for i in ids_of(e)]


@pytest.mark.needs(Feature.OVERWRITE)
def test_overwriting_with_a_lost_answer(table: Table, failpoints: CountedFailpoints) -> None:
    table.append(0)
    failpoints.switch_on("publish.after=error@1")
    result = table.round(token(1), [ids_of(1)], WriteMode.OVERWRITE)
    expect(result.outcome, RoundOutcome.RECOVERED, "the outcome of an overwrite whose answer was lost")
    expect(table.ids, ids_of(1), "rows of an overwrite whose answer was lost")
