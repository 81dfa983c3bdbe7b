"""An answer that is lost: the table tells what happened, and nothing is deleted before it did."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest

from laketier.kit import FailpointError
from laketier.spi import Conflict, Feature, LaketierError, UnknownOutcome, WriteMode
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance.failpoints import CountedFailpoints
from laketier_conformance.lake import QUICK, Table, ids_of, token


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_the_effect_landed_and_the_answer_was_lost(table: Table, failpoints: CountedFailpoints, known: bool) -> None:
    table.append(0, pipeline="before")
    failpoints.switch_on("publish.after=error@1")
    result = table.round(token(0) if known else None, [ids_of(1, 0), ids_of(1, 1)])
    assert (result.outcome, result.rows) == (RoundOutcome.RECOVERED, 10)
    assert table.ids == ids_of(0) + ids_of(1, 0) + ids_of(1, 1)


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
    assert (result.outcome, result.rows) == (RoundOutcome.RECOVERED, 10)
    assert table.ids == ids_of(0) + ids_of(1, 0) + ids_of(1, 1)


def test_a_recovered_epoch_is_not_replayed(table: Table, failpoints: CountedFailpoints) -> None:
    failpoints.switch_on("publish.after=error@1")
    table.append(0)
    failpoints.switch_on("")
    assert table.append(0).outcome is RoundOutcome.ALREADY_THERE
    assert table.append(1).outcome is RoundOutcome.PUBLISHED
    assert table.ids == ids_of(0) + ids_of(1)


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_an_error_before_the_effect(table: Table, failpoints: CountedFailpoints, known: bool) -> None:
    failpoints.switch_on("publish.before=error@1")
    result = table.round(token(0) if known else None, [ids_of(0)])
    assert result.outcome is RoundOutcome.PUBLISHED
    assert table.ids == ids_of(0)


def test_an_error_that_stays_is_raised(table: Table, failpoints: CountedFailpoints) -> None:
    """It is neither swallowed nor taken for a success, and what was staged can still be published later."""
    staged = table.staged(ids_of(0))
    failpoints.switch_on("publish.before=error")
    with pytest.raises(UnknownOutcome):
        table.commit([staged], token(0))
    failpoints.switch_on("")
    assert table.ids == []
    assert table.commit([staged], token(0)).outcome is RoundOutcome.PUBLISHED
    assert table.ids == ids_of(0)


def test_an_abort_after_a_commit_that_landed(table: Table, failpoints: CountedFailpoints) -> None:
    """Spark calls abort with every message when the answer of a commit was lost."""
    results = [table.staged(ids_of(0, 0)), table.staged(ids_of(0, 1))]
    tiering = TieringRound(table.factory, token=token(0), policy=QUICK)
    failpoints.switch_on("ack.before=error")
    with pytest.raises(FailpointError):
        tiering.commit(results)
    failpoints.switch_on("")
    TieringRound(table.factory, token=token(0)).abort(results, commit_was_called=True)
    assert table.ids == ids_of(0, 0) + ids_of(0, 1)


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
        assert table.append(epoch).outcome in (RoundOutcome.PUBLISHED, RoundOutcome.ALREADY_THERE), step
        assert table.ids == _whole(epoch), step


def _whole(epoch: int) -> list[int]:
    return [i for e in range(epoch + 1) for i in ids_of(e)]


@pytest.mark.needs(Feature.OVERWRITE)
def test_overwriting_with_a_lost_answer(table: Table, failpoints: CountedFailpoints) -> None:
    table.append(0)
    failpoints.switch_on("publish.after=error@1")
    result = table.round(token(1), [ids_of(1)], WriteMode.OVERWRITE)
    assert result.outcome is RoundOutcome.RECOVERED
    assert table.ids == ids_of(1)
