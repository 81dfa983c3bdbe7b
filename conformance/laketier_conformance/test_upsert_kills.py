"""Replacing files where answers are lost, steps fail and drivers die: the epoch is there as a whole, or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

import pytest

from laketier.kit import FailpointError
from laketier.spi import (
    DeliveryLevel,
    Feature,
    LaketierError,
    WriteResult,
)
from laketier.tiering import RoundOutcome
from laketier.tiering.failpoints import ACK_BEFORE, PUBLISH_AFTER, PUBLISH_BEFORE
from laketier_conformance.children import Child, ChildDied
from laketier_conformance.expect import expect, refused, the_one
from laketier_conformance.failpoints import CountedFailpoints
from laketier_conformance.keyed import AFTER_1, Keyed, Rows, epoch_1

pytestmark = pytest.mark.needs(Feature.UPSERT)


def test_the_effect_landed_and_the_answer_was_lost(keyed: Keyed, failpoints: CountedFailpoints) -> None:
    results = epoch_1(keyed)
    failpoints.switch_on("publish.after=error@1")
    expect(keyed.round(1, results), RoundOutcome.RECOVERED, "the outcome of an upsert whose answer was lost")
    expect(keyed.rows, AFTER_1, "rows of an upsert whose answer was lost")


def _steps(keyed: Keyed, failpoints: CountedFailpoints) -> list[str]:
    rewritten = epoch_1(keyed)  # the table and what staging does are no steps of a commit
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
