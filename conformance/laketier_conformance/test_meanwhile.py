"""Another pipeline publishes a round while an operation waits before a look at a file, or before an effect: its rows
and its watermark are there afterwards, whatever the operation had seen before.

Nobody has to name these moments: the kernel does. Where it can't, these tests are skipped, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from laketier.spi import DeliveryLevel
from laketier_conformance.child import answer_of
from laketier_conformance.children import Child, Patience
from laketier_conformance.expect import expect
from laketier_conformance.interposed.deciding import NOWHERE
from laketier_conformance.interposed.disk import SYNCS
from laketier_conformance.interposed.looks import Looks, firsts_and_lasts
from laketier_conformance.interposed.runs import Interposed, spread
from laketier_conformance.lake import Lake, Table
from laketier_conformance.operations import APPENDS, BESIDE, NAME, OPERATIONS, Asked, Operation, went_well
from laketier_conformance.outside import is_on_disk, local_folder
from laketier_conformance.seen import Seen

RIVALS = 900_000
_ALONE = ("create", "create-again", "adopt", "drop")
"""There is no table beside these in which a round could be published, or nothing that they would change."""

_REFUSED = {"alter": "SchemaChanged", "collect": "Collected"}
"""What a round is told whose files are of older columns, or could have been deleted without a grace period."""


class _Rival:
    """Publishes epoch after epoch of a pipeline, a row in each, when it is told to come."""

    def __init__(
        self, lake: Lake, children: Callable[[int], list[Child]], pipeline: str = "rival", first: int = 0
    ) -> None:
        self._lake, self._children, self._pipeline = lake, children, pipeline
        self._there: Child | None = None
        self._next, self._patience = first, Patience()
        self.came: int | None = None
        """The row of the last epoch that it published; None where it did not come."""

    def come(self) -> None:
        (self._there,) = self._children(1)
        row = [RIVALS + self._next]
        self._there.begin(self._lake, "round", table=NAME, pipeline=self._pipeline, epoch=self._next, tasks=[row])
        self._patience.came(self._there)

    def leave(self, told: str, operation: Operation | None = None) -> None:
        """Wait for it. It may be refused, where it waited for a lock and came last."""
        self.came = None
        if self._there is None:
            return
        answer = self._there.answer()
        self._there.stop()
        self._there = None
        if operation is not None and answer.get("refused", "") == _REFUSED.get(operation.name):
            return
        expect(answer.get("outcome"), "PUBLISHED", f"{told}: the outcome of that round, which ended with {answer}")
        self.came = RIVALS + self._next
        self._next += 1

    def is_remembered(self, told: str) -> None:
        """Its watermark is that of its last epoch."""
        mark = self._lake.table(NAME).watermark("rival")
        found = -1 if mark is None else mark.token.epoch
        expect(found, self._next - 1, f"{told}: the epoch of the other pipeline's watermark")


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.needs(*each.needs)] if each.needs else [])
        for each in (*APPENDS, *OPERATIONS)
        if each.name not in _ALONE and not each.hook
    ],
)
def test_a_round_comes_meanwhile(
    operation: Operation,
    lake: Lake,
    runs: Interposed,
    looks: Callable[[], AbstractContextManager[Looks]],
    children: Callable[[int], list[Child]],
    unproven: Callable[[str, str], None],
    pytestconfig: pytest.Config,
) -> None:
    """Before some of its effects, then before some of its looks. It is done beside the rival's rows, or refused for
    them and done when it is asked again: an overwrite alone may replace them."""
    lake.create(name=BESIDE).append(0)
    rival, numbers = _Rival(lake, children), iter(range(10_000))
    some = (pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed"))

    def ask(told: Callable[[Any], str], run: Callable[..., Any], **how: Any) -> Any:
        asked = Asked.of(operation, lake, next(numbers))
        done = run(**how, **asked.request)
        _is_right(asked, done.answer, rival, f"{operation.name}, {told(done)}")
        return done

    whole = ask(lambda _: "nothing came upon it", runs.run, at=NOWHERE, but=SYNCS)
    assert went_well(whole.answer), f"a request to {operation.name} goes well: found {whole.answer}"
    for at in spread(len(whole.steps), *some):
        ask(
            lambda run: runs.told(run, "another pipeline's round came before"),
            runs.run,
            at=at,
            but=SYNCS,
            meanwhile=rival.come,
        )
    place = lake.table(BESIDE).info.location
    is_opened = operation.name == "append" and is_on_disk(place)
    if local_folder(place) is None:
        unproven("rounds that come before looks", "the table is in no local folder")
    else:
        with looks() as looked:
            whole = ask(lambda _: "nothing came upon it", looked.ask)
            each = firsts_and_lasts(whole.steps)
            most, draw = some
            for at in spread(len(each), -(-most // (3 if is_opened else 2)), draw):
                ask(
                    lambda run: looked.told(run, "another pipeline's round came before"),
                    looked.ask,
                    at=each[at],
                    meanwhile=rival.come,
                )
    if is_opened:
        _is_of_one_moment(lake, looks, children, draw=some[1])


_OPENED = 2
"""So many of the looks by which a table is opened another driver comes before."""


def _is_of_one_moment(
    lake: Lake,
    looks: Callable[[], AbstractContextManager[Looks]],
    children: Callable[[int], list[Child]],
    draw: int,
) -> None:
    """Another driver of a pipeline publishes its next epoch while the table is opened. Whoever takes the watermark of
    before and the snapshot of after decides by the one, and his commit passes by the other: the rows come twice."""
    asked: dict[str, Any] = {"do": "tell", "table": NAME, "what": "opened"}
    table = lake.table(NAME)
    rival = _Rival(lake, children, "p", _epoch(table) + 1)
    with looks() as looked:
        looked.ask(**asked)  # what is done the first time only
        # To load a table takes the same looks as to open it, and comes before that.
        lasts = sorted({look: at for at, look in enumerate(looked.ask(**asked).steps)}.values())
        for at in spread(len(lasts), _OPENED, draw):
            old = _epoch(table)
            run = looked.ask(at=lasts[at], meanwhile=rival.come, **asked)
            told = looked.told(run, "another driver's round of the same pipeline came before")
            rival.leave(told)
            found, new = (run.answer or {}).get("told"), lake.table(NAME).info.snapshot_id
            assert rival.came is None or found != [new, old], (
                f"{told}: the table was opened at the snapshot of that round, with the watermark of before it: its "
                "rows would come twice"
            )


def _epoch(table: Table) -> int:
    mark = table.watermark()
    return -1 if mark is None else mark.token.epoch


def _is_right(asked: Asked, answer: dict[str, Any] | None, rival: _Rival, told: str) -> None:
    rival.leave(told, asked.operation)
    done = went_well(answer)
    assert done or "refused" in (answer or {}), f"{told}: expected it to be done or refused, found {answer}"
    found = asked.seen
    exactly_once = asked.lake.plugin.delivery is DeliveryLevel.EXACTLY_ONCE
    if rival.came is not None:
        theirs = [row[0] for row in _rows(found)].count(rival.came)
        replaced = asked.operation.name == "overwrite" and done
        assert theirs == 1 or (theirs == 0 and replaced), f"{told}: the row of that round is there {theirs} times"
        rival.is_remembered(told)
    if found is not None and "found" in found:
        expect(found["found"], [row[0] for row in found["rows"] if row[0] >= 1], f"{told}: rows found by an index")
    ours = [row for row in _rows(found) if row[0] != rival.came]
    if done:
        expect(ours, _rows(asked.after), f"{told}: the other rows")
    elif exactly_once:
        assert ours in (_rows(asked.before), _rows(asked.after)), f"{told}: a part is there: found {ours}"
    if not done:
        again = answer_of(asked.lake, asked.again)
        assert went_well(again), f"{told}, and asked for again: found {again}"


def _rows(found: Seen) -> list[Any]:
    return [] if found is None else sorted(found["rows"], key=lambda row: (row[0], str(row[1])))
