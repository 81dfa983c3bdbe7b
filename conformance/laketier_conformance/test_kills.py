"""A driver that is killed at each step, and the replay by another process."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial

import pytest

from laketier.tiering import RoundOutcome
from laketier.tiering.failpoints import ACK_BEFORE, DISCARD_BEFORE, PUBLISH_AFTER, PUBLISH_BEFORE, ROUND_OPENED
from laketier_conformance.children import Child, ChildDied
from laketier_conformance.delivery import made_whole
from laketier_conformance.expect import expect, refused
from laketier_conformance.failpoints import CountedFailpoints
from laketier_conformance.lake import Lake, Table, ids_of

Take = Callable[[int], list[Child]]
LANDED = (PUBLISH_AFTER, ACK_BEFORE)


def _killed(child: Child, lake: Lake, epoch: int, failpoint: str) -> None:
    tasks = [ids_of(epoch, 0), ids_of(epoch, 1)]
    with refused(ChildDied, f"a driver that is to be killed at {failpoint} runs epoch {epoch}") as death:
        child.ask(lake, "round", table="db.t", pipeline="p", epoch=epoch, tasks=tasks, failpoints=f"{failpoint}=kill")
    expect(death.value.code, -signal.SIGKILL, f"the signal that ended the driver at {failpoint}")


def _expected(epochs: int) -> list[int]:
    return sorted(i for epoch in range(epochs) for split in (0, 1) for i in ids_of(epoch, split))


def _replay(table: Table, epoch: int) -> RoundOutcome:
    return table.append(epoch, ids_of(epoch, 0), ids_of(epoch, 1)).outcome


@pytest.mark.parametrize("failpoint", [ROUND_OPENED, PUBLISH_BEFORE, PUBLISH_AFTER, ACK_BEFORE])
def test_killed_in_the_protocol(table: Table, children: Take, failpoint: str) -> None:
    _replay(table, 0)
    (child,) = children(1)
    _killed(child, table.lake, 1, failpoint)
    landed = failpoint in LANDED
    expect(
        table.ids,
        _expected(2 if landed else 1),
        f"rows after a driver was killed at {failpoint}: no reader sees a half of it",
    )
    expect(
        _replay(table, 1),
        RoundOutcome.ALREADY_THERE if landed else RoundOutcome.PUBLISHED,
        f"the outcome of the replay after a driver was killed at {failpoint}",
    )
    expect(table.ids, _expected(2), f"rows of the replay after a driver was killed at {failpoint}")
    expect(_replay(table, 2), RoundOutcome.PUBLISHED, "the outcome of the epoch after a replay")
    expect(table.ids, _expected(3), "rows of the epoch after a replay")


def test_killed_before_a_discard(table: Table, children: Take) -> None:
    """A replay that staged again dies before it deletes: what is live stays."""
    _replay(table, 0)
    (child,) = children(1)
    _killed(child, table.lake, 0, DISCARD_BEFORE)
    expect(table.ids, _expected(1), "rows after a replay was killed before it discarded its files")
    expect(_replay(table, 0), RoundOutcome.ALREADY_THERE, "the outcome of the replay of a replay that was killed")
    expect(_replay(table, 1), RoundOutcome.PUBLISHED, "the outcome of the next epoch after a replay that was killed")
    expect(table.ids, _expected(2), "rows of the next epoch after a replay that was killed")


def test_killed_at_each_failpoint_of_the_format(table: Table, children: Take, failpoints: CountedFailpoints) -> None:
    """The steps that the format itself names. Before each the epoch is there as the delivery level has it, and a
    replay by another process makes it whole, also when the recovery is killed at the same step."""
    failpoints.record()
    _replay(table, 0)
    steps = failpoints.own
    failpoints.forget()
    failpoints.switch_on("")
    for epoch, step in enumerate(steps, start=1):
        (child,) = children(1)
        _killed(child, table.lake, epoch, step)
        told = f"killed at {step}"
        made_whole(table, epoch, _expected(epoch), _expected(epoch + 1), partial(_replay, table, epoch), told)


def test_killed_twice(table: Table, children: Take) -> None:
    """The recovery dies as well."""
    first, second = children(2)
    _killed(first, table.lake, 0, PUBLISH_BEFORE)
    _killed(second, table.lake, 0, PUBLISH_AFTER)
    expect(_replay(table, 0), RoundOutcome.ALREADY_THERE, "the outcome of the replay after two drivers were killed")
    expect(table.ids, _expected(1), "rows of the replay after two drivers were killed")
