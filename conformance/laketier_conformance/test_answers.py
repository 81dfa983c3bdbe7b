"""Each request to a server, over TCP or a socket of Unix, meets a fault in turn: a catalog over HTTP, a database, any
other. The connection is reset before it gets there; or it got there, and the answer is lost, cut off, late, or 503.
Whoever asked finds out what became of it, or says that it failed: it is no conflict, and not done again without a look.

Nobody has to name these requests: the kernel does. Where it can't, these tests are skipped, and the verdict says so. A
format that asks no server has nothing to interpose, and the report tells that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from laketier.spi import DeliveryLevel
from laketier_conformance.delivery import ids_until, made_whole, not_absent, own, publish_of, round_of
from laketier_conformance.expect import expect
from laketier_conformance.interposed.answers import NOWHERE, Answers, Asking
from laketier_conformance.interposed.runs import spread
from laketier_conformance.interposed.wire import HOWS, LATE
from laketier_conformance.lake import Lake, Table, ids_of
from laketier_conformance.operations import OPERATIONS, Asked, Operation, went_well


def _faults(whole: Asking, config: pytest.Config) -> Iterator[tuple[int, str]]:
    """Some of the requests, each with each fault; with ``--lake-steps=0`` all of them."""
    assert went_well(whole.answer), f"nothing came upon a request to {whole.do}: found {whole.answer}"
    most, draw = config.getoption("lake_steps"), config.getoption("lake_seed")
    for number, how in enumerate(HOWS):
        some = -(-most // 3) if how == LATE else most  # it takes its time
        for at in spread(len(whole.requests), some, draw + number):
            yield at, how


def test_an_answer_to_a_round(table: Table, answers: Answers | None, pytestconfig: pytest.Config) -> None:
    """Its rows are there once, whatever it was told; and it was told the truth."""
    if answers is None:
        return
    whole = answers.run(at=NOWHERE, **round_of(0))
    for epoch, (at, how) in enumerate(_faults(whole, pytestconfig), start=1):
        asking = answers.run(at=at, how=how, **round_of(epoch))
        told = answers.told(asking, at, how)
        assert asking.answer is not None, f"{told}: the process died"
        if went_well(asking.answer):
            expect(table.ids, ids_until(epoch + 1), f"{told}: the round was acknowledged, and the rows")
        before, after = ids_until(epoch), ids_until(epoch + 1)
        made_whole(table, epoch, before, after, lambda: table.append(epoch).outcome, told)  # noqa: B023 - called at once


def test_an_answer_to_a_publish_is_no_conflict(
    table: Table, answers: Answers | None, pytestconfig: pytest.Config
) -> None:
    """Nobody else commits. So publish answers and has landed, or raises an error from which nobody can tell: a conflict
    or a refusal would say that its files may be deleted. Before its effect it may say that this has not begun, and then
    nothing is there."""
    if answers is None:
        return
    exactly_once = table.lake.plugin.delivery is DeliveryLevel.EXACTLY_ONCE

    def publish(epoch: int, at: int, how: str) -> Asking:
        return answers.run(at=at, how=how, **publish_of(table, epoch))

    whole, rows = publish(0, NOWHERE, ""), table.ids
    for epoch, (at, how) in enumerate(_faults(whole, pytestconfig), start=1):
        asking, found = publish(epoch, at, how), table.ids
        told = answers.told(asking, at, how)
        assert asking.answer is not None, f"{told}: the process died"
        said, met = asking.answer.get("failed", ""), own(found, rows + ids_of(epoch))
        assert not asking.answer.get("certain"), f"{told}, and no other commit came: publish said {said}{met}"
        not_absent(asking.answer, ids_of(epoch), found, told)
        landed = {*ids_of(epoch)} <= {*found}
        assert said or landed, f"{told}: publish told of a success, and it did not land: found {found}"
        if exactly_once:
            assert found in (rows, rows + ids_of(epoch)), f"{told}: a part is there, or rows are there twice: {found}"
        rows = found


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.needs(*each.needs)] if each.needs else [])
        for each in OPERATIONS
        if not each.hook
    ],
)
def test_an_answer_to_an_operation(
    operation: Operation, lake: Lake, answers: Answers | None, pytestconfig: pytest.Config
) -> None:
    """It is done, or it failed; it is there as a whole or not at all, and can be done again."""
    numbers = itertools.count()
    first = Asked.of(operation, lake, next(numbers))
    if answers is None:
        return
    whole = answers.run(at=NOWHERE, **first.request)
    first.judge(f"a request to {operation.name}", True, first.seen)
    for at, how in _faults(whole, pytestconfig):
        asked = Asked.of(operation, lake, next(numbers))
        asking = answers.run(at=at, how=how, **asked.request)
        told = f"{operation.name}, {answers.told(asking, at, how)}"
        assert asking.answer is not None, f"{told}: the process died"
        assert "raised" not in asking.answer, f"{told}: a failure is logged, and not raised: found {asking.answer}"
        asked.judge_all(told, asking.answer)
