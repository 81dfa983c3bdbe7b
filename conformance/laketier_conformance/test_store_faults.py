"""A store that fails: each request of each operation in turn is refused, lost, or answered although nobody hears it.

A proxy before the store sees the requests, so nobody has to name them. The same call is then made again: rows are there
once, the table is whole, and what the call said was an error of laketier's, or an OSError, that shows no key.
"""

from __future__ import annotations

import builtins
import itertools
import logging
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import AddColumn, CommitError, Feature, LaketierError, Watermark
from laketier.tiering import RoundOutcome
from laketier_conformance.child import answer_of
from laketier_conformance.children import Child, ChildDied
from laketier_conformance.delivery import made_whole, replay, round_of
from laketier_conformance.expect import NotShown, cause_of, expect, refused
from laketier_conformance.expect import told as error_told
from laketier_conformance.interposed.runs import spread
from laketier_conformance.lake import Table, ids_of
from laketier_conformance.operations import APPENDS, OPERATIONS, Answer, Asked, Operation, went_well
from laketier_conformance.stored import Stored
from laketier_conformance.stores.proxy import Fault
from laketier_conformance.stores.steps import FirstTime, Step, decisions, recorded
from laketier_conformance.stores.wsgi import Sent
from laketier_conformance.verdict import STRIDES

pytestmark = pytest.mark.needs(Feature.OBJECT_STORES)

InStore = Callable[[], Stored]
RIVALS = 900_000
AGAIN = 40
"""So often a call is made again: each time it gets at least one request further."""
LEFT_OUT = "of operations in a store, an append and one more by the seed; --lake-steps=2 takes each"
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
    operation: Operation,
    in_store: InStore,
    pytestconfig: pytest.Config,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> None:
    """First one of its requests at a time, then each when it is first made, then all from one of them on."""
    caplog.set_level(logging.DEBUG, "laketier")
    stored = in_store()
    is_declared = stored.lake.declares(*operation.needs)
    # What is not declared is refused whatever is left out.
    if is_declared and operation.name not in _asked_for(pytestconfig):
        request.node.user_properties.append((STRIDES, LEFT_OUT))
        return
    most, seed = pytestconfig.getoption("lake_steps"), f"{pytestconfig.getoption('lake_seed')} {operation.name}"
    first = Asked.of(operation, stored.lake, 0)
    with recorded(stored.proxy) as sent:
        answer = answer_of(stored.lake, first.request)
    assert went_well(answer), f"a request to {operation.name} in a store goes well: found {answer}"
    for number, decide in enumerate(decisions(sent, most, seed), start=1):
        asked = Asked.of(operation, stored.lake, number)
        answer = _asked_of(asked, decide, stored)
        _judge(asked, f"{operation.name}, {decide.told}", answer, stored)
    _hidden(caplog.text, stored, f"the log of a store that fails under {operation.name}")


def _asked_for(pytestconfig: pytest.Config) -> tuple[str, ...]:
    """Names of the operations: of one step each, an append and one more that the seed draws."""
    if pytestconfig.getoption("lake_steps") != 1:
        return _AT_ALL
    append, *others = _AT_ALL
    return append, others[pytestconfig.getoption("lake_seed") % len(others)]


def _asked_of(asked: Asked, decide: Step | FirstTime, stored: Stored) -> Answer:
    """The answer to the call. Where each request fails at first, it is made again until all are through."""
    answer: Answer = {}
    for _ in range(AGAIN if isinstance(decide, FirstTime) else 1):
        if isinstance(decide, FirstTime):
            decide.begin_again()
        with stored.proxy.deciding(decide):
            answer = answer_of(stored.lake, asked.request)
        _said(answer, f"{asked.operation.name}, {decide.told}", stored)
        if went_well(answer) or not (asked.operation.repeats or _is_there(asked)):
            break
    return answer


def _is_there(asked: Asked) -> bool:
    try:
        return asked.seen == asked.before
    except LaketierError:
        return True


def _said(answer: Answer, told: str, stored: Stored) -> None:
    kind, _, _ = answer.get("failed", "OSError").partition(":")
    is_known = issubclass(getattr(builtins, kind, object), OSError)
    assert is_known, (
        f"{told}: the call ended in neither an error of laketier's nor an OSError, which it names: {answer}"
    )
    assert "raised" not in answer, f"{told}: a failure is logged, and not raised: found {answer}"
    _hidden(str(answer), stored, f"{told}: the error of the call")


def _hidden(text: str, stored: Stored, what: str) -> None:
    # An assert would print both, and the key is the user's.
    if stored.bucket.secret_access_key in text:
        pytest.fail(f"{what} has the secret key of the store in it")


def _judge(asked: Asked, told: str, answer: Answer, stored: Stored) -> None:
    _said(answer, told, stored)
    try:
        found = asked.seen
    except LaketierError as error:
        # A store deletes one object after the other, so what is left of a table may be refused: never read.
        is_half_gone = asked.operation.name == "drop" and not went_well(answer)
        if not is_half_gone:
            pytest.fail(f"{told}: the table can't be read: {error}")
        found = asked.before
    asked.judge_both(told, answer, found)


def _expected(epochs: int) -> list[int]:
    return [i for epoch in range(epochs) for i in ids_of(epoch)]


def _is_conditional(sent: Sent) -> bool:
    return _changes(sent) and sent.is_conditional


def _changes(sent: Sent) -> bool:
    return sent.changes


def test_a_round_is_killed(
    in_store: InStore, children: Callable[[int], list[Child]], pytestconfig: pytest.Config
) -> None:
    """By SIGKILL, as it waits for the answer to a request that changes something: what it asked for happens, or not.
    Rounds differ, as some have work that is due now and then: one that never makes the request ends well."""
    stored = in_store()
    table = stored.lake.create()
    table.append(0)
    with recorded(stored.proxy) as sent:
        table.append(1)
    steps = [(at, how) for at in range(sum(each.changes for each in sent)) for how in (Fault.RESET, Fault.CUT)]
    if not steps:
        raise NotShown(Feature.OBJECT_STORES, "a round changes nothing in the store")
    most, seed = pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed")
    epochs = itertools.count(2)
    killed = [
        _is_killed(table, next(epochs), steps[which], stored, children) for which in spread(len(steps), most, seed)
    ]
    # The steps that were drawn may be of work that was due in the recorded round alone. Each round has a first one.
    assert any(killed) or _is_killed(table, next(epochs), steps[0], stored, children), (
        "a round changes something in the store: expected a request to be killed at, and none came"
    )


def _is_killed(
    table: Table, epoch: int, at: tuple[int, Fault], stored: Stored, children: Callable[[int], list[Child]]
) -> bool:
    """Whether the round made the request."""
    (child,) = children(1)
    step = Step(*at, counts=_changes, meanwhile=child.kill)
    answer: Answer | None = None
    with stored.proxy.deciding(step):
        child.begin(table.lake, **round_of(epoch))
        try:
            answer = child.answer()
        except ChildDied as death:
            expect(death.code, -signal.SIGKILL, f"the signal that ended a process at {step.told}")
    child.stop()
    if answer is not None:
        assert went_well(answer), f"a round that is not killed goes well: found {answer}"
        expect(table.ids, _expected(epoch + 1), f"rows after epoch {epoch}, which was not killed")
        return False
    told = f"a round is killed at {step.told}"
    made_whole(table, epoch, _expected(epoch), _expected(epoch + 1), partial(replay, table, epoch), told)
    return True


def test_a_rival_before_each_request(
    in_store: InStore, children: Callable[[int], list[Child]], pytestconfig: pytest.Config
) -> None:
    """Another pipeline publishes while a round waits before a request that changes something: neither loses a row,
    whichever name or number both would take. A put on a condition is then also refused as of a store that is busy: a
    library that sends it again hears of the rival's object, and takes it for its own. The rival has a process of its
    own: in one, a library may keep its requests until those that are held up have timed out, and it would come too
    late."""
    stored = in_store()
    table = stored.lake.create()
    table.append(0)
    with recorded(stored.proxy) as sent:
        table.append(1)
    most, seed = pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed")
    conditional = [at for at, each in enumerate(filter(_changes, sent)) if each.is_conditional]
    some = set(conditional)
    if most != 1 or not some:
        some |= {*spread(sum(each.changes for each in sent), most, seed)}
    steps: list[tuple[int, Fault | None, Callable[[Sent], bool]]] = [(at, None, _changes) for at in sorted(some)]
    # Counted by themselves: a round that follows another one's trouble may tidy up before it puts.
    steps += [(at, Fault.SLOW_DOWN, _is_conditional) for at in range(len(conditional))]
    came = 0
    (rival,) = children(1)
    for epoch, (at, fault, counts) in enumerate(steps, start=2):
        said: list[Answer] = []
        theirs = {**round_of(came), "pipeline": "rival", "tasks": [[RIVALS + came]]}

        def come(said: list[Answer] = said, theirs: dict[str, Any] = theirs) -> None:
            said.append(rival.ask(stored.lake, **theirs))

        step = Step(at, fault, counts=counts, meanwhile=come)
        with stored.proxy.deciding(step):
            answer = answer_of(stored.lake, round_of(epoch))
        step.wait()
        told = f"another pipeline published before {step.told}"
        assert step.failed is None, f"{told}: its round ended in {error_told(step.failed)}"
        assert all(went_well(each) for each in said), f"{told}: its round ended with {said[0]}"
        came += [each.get("outcome") for each in said].count(RoundOutcome.PUBLISHED.name)
        assert went_well(answer), f"{told}: the round ended with {answer}"
        seen = table.ids
        expect([i for i in seen if i < RIVALS], _expected(epoch + 1), f"{told}: rows of the round")
        expect([i - RIVALS for i in seen if i >= RIVALS], list(range(came)), f"{told}: rows of the rival")
    assert came, "a rival publishes beside a round in a store: expected it to come once at least, and it never did"


def test_what_cant_be_read_is_not_gone(in_store: InStore) -> None:
    """Each object that a reader asks for is refused in turn, also to a driver that opens the table. Rows and watermarks
    that such a reader leaves out nobody would miss: it tells all of them, or an error."""
    stored = in_store()
    table = stored.lake.create()
    table.append(0)

    def read() -> tuple[list[int], Watermark | None]:
        return table.ids, table.watermark()

    with recorded(stored.proxy) as sent:
        whole = read()
    for told in dict.fromkeys(each.told for each in sent if not each.changes):
        with stored.proxy.deciding(partial(_denies, told)):
            try:
                found = read()
            except (LaketierError, OSError):
                continue
        expect(found, whole, f"rows and watermark of a table in a store that refuses {told}")


def _denies(told: str, sent: Sent) -> Fault | None:
    return Fault.DENIED if sent.told == told else None


def _denied(stored: Stored, ask: Callable[[], object]) -> Exception | None:
    """What the call raised while the store refuses each request."""
    with stored.proxy.deciding(lambda _: Fault.DENIED):
        return _error_of(ask)


def test_no_error_shows_a_key(in_store: InStore) -> None:
    """A store that refuses each request, as it does with keys that ended: whatever is asked, the error is one of
    laketier's or an OSError, and neither it nor what it was raised from shows the secret."""
    stored = in_store()
    table = stored.lake.create()
    table.append(0)
    storage, factory, info = stored.lake.storage, table.factory, table.info
    column, committer = AddColumn(pa.field("more", pa.int64())), table.committer()
    staged = table.staged(ids_of(1))
    asks: dict[str, Callable[[], object]] = {
        "a table is loaded": lambda: storage.catalog().load_table(table.path),
        "tables are listed": lambda: storage.catalog().list_tables(),
        "a table is made": lambda: stored.lake.create_amid_faults(name="db.other"),
        "rows are staged": lambda: table.stage(ids_of(2), factory=factory),
        "a table is opened for a commit": lambda: table.committer().open(),
        "a round is published": lambda: table.commit([staged], None),
        "rows are read": table.read,
    }
    for doing, ask in asks.items():
        told = f"{doing}, and the store refuses each request"
        before, failed = stored.seen, _denied(stored, ask)
        # A catalog elsewhere may answer by itself.
        if failed is None and stored.seen == before:
            continue
        with refused((LaketierError, CommitError, OSError), told):
            if failed is not None:
                raise failed
        _shows_no_key(stored, doing, failed)
    more: dict[str, Callable[[], object]] = {
        "staged files are discarded": lambda: committer.discard([staged]),
        "snapshots are listed": lambda: storage.history(info).snapshots(9),
        "versions are told": lambda: storage.changes(info).versions(),
        "orphans are listed": lambda: storage.maintenance(info).orphans(1 << 53),
        "a column is added": lambda: storage.catalog().alter_table(table.path, [column]),
        "a table is dropped": lambda: storage.catalog().drop_table(table.path),
    }
    # At once, as libraries wait and try again. What the format does not have is refused.
    with ThreadPoolExecutor(len(more)) as pool, stored.proxy.deciding(lambda _: Fault.DENIED):
        for doing, error in zip(more, pool.map(_error_of, more.values()), strict=True):
            _shows_no_key(stored, doing, error)
    committer.close()
    expect(table.ids, ids_of(0), "rows after a store refused each request")


def _error_of(ask: Callable[[], object]) -> Exception | None:
    try:
        ask()
    except Exception as error:  # noqa: BLE001 - the caller looks at it
        return error
    return None


def _shows_no_key(stored: Stored, doing: str, error: BaseException | None) -> None:
    """Neither it nor what it was raised from."""
    while error is not None:
        told = f"{doing}, and the store refuses it: the text of {type(error).__name__}"
        _hidden(f"{error!r} {error}", stored, told)
        error = cause_of(error)
