"""A store that fails: each request of each operation in turn is refused, lost, or answered although nobody hears it.

A proxy before the store sees the requests, so nobody has to name them. The same call is then made again: rows are there
once, the table is whole, and what the call said was an error of laketier's that shows no key.
"""

from __future__ import annotations

import itertools
import logging
import random
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from laketier.spi import Feature, LaketierError
from laketier.tiering import RoundOutcome
from laketier_conformance.child import answer_of
from laketier_conformance.children import Child, ChildDied
from laketier_conformance.delivery import made_whole
from laketier_conformance.expect import expect, refused
from laketier_conformance.interposed.runs import spread
from laketier_conformance.lake import Table, ids_of
from laketier_conformance.operations import APPENDS, OPERATIONS, Answer, Asked, Operation, went_well
from laketier_conformance.stores.proxy import Fault, Sent
from laketier_conformance.stores.steps import CHANGES, FirstTime, Step, faults_of, recorded
from laketier_conformance.stores.stored import Stored

pytestmark = pytest.mark.needs(Feature.OBJECT_STORES)

InStore = Callable[[], Stored]
RIVALS = 900_000
AGAIN = 40
"""So often a call is made again: each time it gets at least one request further."""
_AT_ALL = ("append", "create", "alter", "drop", "overwrite", "upsert", "discard", "collect")


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.needs(*each.needs)] if each.needs else [])
        for each in (*APPENDS, *OPERATIONS)
        if each.name in _AT_ALL
    ],
)
def test_requests_fail(
    operation: Operation, in_store: InStore, pytestconfig: pytest.Config, caplog: pytest.LogCaptureFixture
) -> None:
    """First one of its requests at a time, then each when it is first made, then all from one of them on."""
    caplog.set_level(logging.DEBUG, "laketier")
    stored = in_store()
    most, seed = pytestconfig.getoption("lake_steps"), f"{pytestconfig.getoption('lake_seed')} {operation.name}"
    first = Asked.of(operation, stored.lake, 0)
    with recorded(stored.proxy) as sent:
        answer = answer_of(stored.lake, first.request)
    assert went_well(answer), f"a request to {operation.name} in a store goes well: found {answer}"
    numbers = itertools.count(1)
    for at, fault in faults_of(sent, most, seed):
        step = Step(at, fault)
        asked = Asked.of(operation, stored.lake, next(numbers))
        with stored.proxy.deciding(step):
            answer = answer_of(stored.lake, asked.request)
        _judge(asked, f"{operation.name}, {step.told}", answer, stored)
    drawn = random.Random(seed)  # noqa: S311 - which of them is no secret
    for fault in drawn.sample(CHANGES, min(most or len(CHANGES), len(CHANGES))):
        _each_at_first(Asked.of(operation, stored.lake, next(numbers)), fault, stored)
    for at in spread(len(sent), most // 2 if most else 0, pytestconfig.getoption("lake_seed")) if most != 1 else ():
        step = Step(at, drawn.choice([Fault.FAILED, Fault.LOST, Fault.RESET, Fault.DENIED]), lasting=True)
        asked = Asked.of(operation, stored.lake, next(numbers))
        with stored.proxy.deciding(step):
            answer = answer_of(stored.lake, asked.request)
        _judge(asked, f"{operation.name}, {step.told}", answer, stored)
    _hidden(caplog.text, stored, f"the log of a store that fails under {operation.name}")


def _each_at_first(asked: Asked, fault: Fault, stored: Stored) -> None:
    """Whoever gives up makes the call again, and comes further."""
    deciding = FirstTime(fault)
    answer: Answer = {}
    for _ in range(AGAIN):
        with stored.proxy.deciding(deciding):
            answer = answer_of(stored.lake, asked.request)
        _said(answer, f"{asked.operation.name}, {deciding.told}", stored)
        found = asked.seen
        if went_well(answer) or (found == asked.after and not asked.operation.repeats):
            break
    _judge(asked, f"{asked.operation.name}, {deciding.told}", answer, stored)


def _said(answer: Answer, told: str, stored: Stored) -> None:
    failed = answer.get("failed")
    assert failed is None, f"{told}: the call ended in no error of laketier's, which says what to do next: {failed}"
    assert "raised" not in answer, f"{told}: a failure is logged, and not raised: found {answer}"
    _hidden(str(answer), stored, f"{told}: the error of the call")


def _hidden(text: str, stored: Stored, what: str) -> None:
    assert stored.bucket.secret_access_key not in text, f"{what} has the secret key of the store in it"


def _judge(asked: Asked, told: str, answer: Answer, stored: Stored) -> None:
    _said(answer, told, stored)
    try:
        found = asked.seen
    except LaketierError as error:
        pytest.fail(f"{told}: the table can't be read: {error}")
    asked.judge(told, went_well(answer), found)
    if asked.operation.repeats or found != asked.after:
        asked.judge_again(told, found, answer_of(asked.lake, asked.again), asked.seen)


def _round(epoch: int) -> dict[str, Any]:
    return {"do": "round", "table": "db.t", "pipeline": "p", "epoch": epoch, "tasks": [ids_of(epoch)]}


def _expected(epochs: int) -> list[int]:
    return [i for epoch in range(epochs) for i in ids_of(epoch)]


def _replay(table: Table, epoch: int) -> RoundOutcome:
    return table.append(epoch).outcome


def _changes(sent: Sent) -> bool:
    return sent.changes


def test_a_round_is_killed(
    in_store: InStore, children: Callable[[int], list[Child]], pytestconfig: pytest.Config
) -> None:
    """By SIGKILL, as it waits for the answer to a request that changes something: what it asked for happens, or not."""
    stored = in_store()
    table = stored.lake.create()
    table.append(0)
    with recorded(stored.proxy) as sent:
        table.append(1)
    steps = [(at, how) for at in range(sum(each.changes for each in sent)) for how in (Fault.RESET, Fault.CUT)]
    most, seed = pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed")
    for epoch, which in enumerate(spread(len(steps), 2 * most, seed), start=2):
        (child,) = children(1)
        step = Step(*steps[which], counts=_changes, meanwhile=child.kill)
        with stored.proxy.deciding(step):
            child.begin(table.lake, **_round(epoch))
            if step.met is None:
                with refused(ChildDied, f"a process is killed at {step.told}") as death:
                    child.answer()
                expect(death.value.code, -signal.SIGKILL, f"the signal that ended a process at {step.told}")
        child.stop()
        told = f"a round is killed at {step.told}"
        made_whole(table, epoch, _expected(epoch), _expected(epoch + 1), partial(_replay, table, epoch), told)


def test_a_rival_before_each_request(in_store: InStore, pytestconfig: pytest.Config) -> None:
    """Another pipeline publishes while a round waits before a request that changes something: neither loses a row,
    whichever name or number both would take."""
    stored = in_store()
    table = stored.lake.create()
    table.append(0)
    with recorded(stored.proxy) as sent:
        table.append(1)
    most, seed = pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed")
    conditional = [at for at, each in enumerate(filter(_changes, sent)) if each.is_conditional]
    some = {*spread(sum(each.changes for each in sent), most, seed), *conditional}
    came = 0
    for epoch, at in enumerate(sorted(some), start=2):

        def rival() -> None:
            nonlocal came
            result = table.append(came, [RIVALS + came], pipeline="rival")
            came += result.outcome is RoundOutcome.PUBLISHED

        step = Step(at, None, counts=_changes, meanwhile=rival)
        with stored.proxy.deciding(step):
            answer = answer_of(stored.lake, _round(epoch))
        told = f"another pipeline published before {step.told}"
        assert went_well(answer), f"{told}: the round ended with {answer}"
        seen = table.ids
        expect([i for i in seen if i < RIVALS], _expected(epoch + 1), f"{told}: rows of the round")
        expect([i - RIVALS for i in seen if i >= RIVALS], list(range(came)), f"{told}: rows of the rival")
    assert came, "a rival publishes beside a round in a store: expected it to come once at least, and it never did"


def test_no_error_shows_a_key(in_store: InStore) -> None:
    """A store that refuses each request, as it does with keys that ended: whatever is asked, the error is one of
    laketier's, and neither it nor what it was raised from shows the secret."""
    stored = in_store()
    table = stored.lake.create()
    table.append(0)
    storage, factory = stored.lake.storage, table.factory
    staged = table.staged(ids_of(1))
    asks: dict[str, Callable[[], object]] = {
        "a table is loaded": lambda: storage.catalog().load_table(table.path),
        "tables are listed": lambda: storage.catalog().list_tables(),
        "a table is made": lambda: stored.lake.create(name="db.other"),
        "rows are staged": lambda: table.stage(ids_of(2), factory=factory),
        "a table is opened for a commit": lambda: table.committer().open(),
        "a round is published": lambda: table.commit([staged], None),
        "rows are read": lambda: table.read(),
    }
    for doing, ask in asks.items():
        with stored.proxy.deciding(lambda _: Fault.DENIED):
            with refused(LaketierError, f"{doing}, and the store refuses each request") as error:
                ask()
        found: BaseException | None = error.value
        while found is not None:
            _hidden(
                f"{found!r} {found}", stored, f"{doing}, and the store refuses it: the text of {type(found).__name__}"
            )
            found = found.__cause__ or found.__context__
    expect(table.ids, ids_of(0), "rows after a store refused each request")
