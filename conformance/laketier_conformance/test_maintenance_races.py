"""Another process appends, overwrites, replaces or deletes rows, or adds a column, while a table is compacted, expired
or tidied up: before some effect of that. Its work is there afterwards as if it had been alone, whatever the maintenance
had seen before: no deleted row comes back, and none that was appended is lost.

Nobody has to name these moments: the kernel does. Where it can't, these tests are skipped, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from laketier.spi import DeliveryLevel, Feature, LaketierError, WriteMode, support_of
from laketier_conformance.child import answer_of
from laketier_conformance.children import Child, Patience
from laketier_conformance.expect import expect
from laketier_conformance.harness import Harness
from laketier_conformance.interposed.deciding import NOWHERE, Run
from laketier_conformance.interposed.disk import SYNCS
from laketier_conformance.interposed.runs import Interposed, spread
from laketier_conformance.lake import Lake, Table, ids_of, name_of, token
from laketier_conformance.operations import NAME, Answer, Request, went_well
from laketier_conformance.seen import Seen, seen
from laketier_conformance.work import WORK, Work

_ROWS = 3


@dataclass(frozen=True)
class _Maintenance:
    """``hook``: the member of the harness that it takes. Else it is laketier's own: it may refuse, and never fails."""

    request: Request
    hook: str = ""
    refuses: str = ""
    """What a round is told whose files it could have deleted, as it was given no grace period."""
    needs: tuple[Feature, ...] = ()
    prepare: Callable[[_Beside], None] = lambda beside: beside.grow()
    """Gives it something to do."""

    @property
    def name(self) -> str:
        return self.hook or str(self.request["do"])


@dataclass
class _Beside:
    """The table, what the other process does to it, and how often it did. ``there``: what a reader finds, as far as
    both have come."""

    table: Table
    children: Callable[[int], list[Child]]
    there: Seen = None
    rounds: int = 0
    others: int = 0
    patience: Patience = field(default_factory=Patience)
    _comes: list[Child] = field(default_factory=list)

    def grow(self, mode: WriteMode = WriteMode.APPEND) -> None:
        """A round more."""
        ids = ids_of(self.rounds, rows=_ROWS)
        self.table.round(token(self.rounds), [ids], mode)
        self.rounds += 1
        found = seen(self.table.lake, NAME)
        if self.there is not None:
            kept = self.there["rows"] if mode is WriteMode.APPEND else []
            rows = sorted([*kept, *([i, name_of(i)] for i in ids)], key=lambda row: row[0])
            expect(found, {**self.there, "rows": rows}, "a reader finds after the round before a maintenance")
        self.there = found

    def come(self, request: Request) -> None:
        """Begin it, while the maintenance waits."""
        (other,) = self.children(1)
        self._comes.append(other)
        other.begin(self.table.lake, **request)
        self.patience.came(other)

    def left(self) -> Answer | None:
        """Wait for it. None where it did not come."""
        if not self._comes:
            return None
        other = self._comes.pop()
        answer = other.answer()
        other.stop()
        return answer


def _leave_a_version(beside: _Beside) -> None:
    full = support_of(beside.table.lake.plugin.features, Feature.OVERWRITE).full
    beside.grow(WriteMode.OVERWRITE if full else WriteMode.APPEND)


def _leave_an_orphan(beside: _Beside) -> None:
    beside.grow()
    beside.table.staged(ids_of(beside.rounds))


MAINTENANCE = (
    _Maintenance({"do": "keep", "hook": "compact"}, hook="compact"),
    _Maintenance({"do": "keep", "hook": "expire"}, hook="expire", prepare=_leave_a_version),
    _Maintenance({"do": "collect"}, refuses="Collected", needs=(Feature.ORPHAN_COLLECTION,), prepare=_leave_an_orphan),
    _Maintenance({"do": "end"}, needs=(Feature.ORPHAN_COLLECTION, Feature.OVERWRITE), prepare=_leave_a_version),
)


@pytest.mark.parametrize(
    "maintenance",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.needs(*each.needs)] if each.needs else [])
        for each in MAINTENANCE
    ],
)
def test_work_of_others_comes_upon_maintenance(
    maintenance: _Maintenance,
    lake: Lake,
    runs: Interposed,
    harness: Harness,
    children: Callable[[int], list[Child]],
    unproven: Callable[[str, str], None],
    pytestconfig: pytest.Config,
) -> None:
    """Both are done, or the maintenance gives up, or the work is refused as it came last: then it can be done again."""
    what = f"{maintenance.name}, upon which others come"
    if maintenance.hook and getattr(harness, maintenance.hook) is None:
        unproven(what, f"the harness has no {maintenance.hook}")
        return
    work = [each for each in WORK if each.is_there(lake, harness)]
    keys = {"primary_key": ("id",)} if support_of(lake.plugin.features, Feature.UPSERT).full else {}
    beside = _Beside(lake.create(name=NAME, **keys), children)
    beside.grow()
    maintenance.prepare(beside)
    request = {"table": NAME, **maintenance.request}
    whole = runs.run(at=NOWHERE, but=SYNCS, **request)
    if (whole.answer or {}).get("refused") == "FeatureNotSupported":
        unproven(what, "the format ends no snapshots itself")
        return
    assert went_well(whole.answer), f"a request to {maintenance.name} goes well: found {whole.answer}"
    expect(seen(lake, NAME), beside.there, f"{maintenance.name}: a reader finds what was there before")
    most, draw = -(-pytestconfig.getoption("lake_steps") // 3), pytestconfig.getoption("lake_seed")
    each_step = [(each, at) for at in range(len(whole.steps)) for each in work]
    came = 0
    for number in spread(len(each_step), most, draw):
        other, at = each_step[number]
        came += _is_raced(maintenance, other, at, beside, runs)
    if not came:
        unproven(what, "it had no effect before which others could come")


def _is_raced(maintenance: _Maintenance, work: Work, at: int, beside: _Beside, runs: Interposed) -> bool:
    """Whether the other one came."""
    maintenance.prepare(beside)
    lake = beside.table.lake
    asked = work.ask(beside.table, beside.others)
    request = {"table": NAME, **maintenance.request}
    run = runs.run(at=at, meanwhile=lambda: beside.come(asked), but=SYNCS, **request)
    told = f"{maintenance.name}, {runs.told(run, f'{work.told} by another process came before')}"
    answer = beside.left()
    _is_answered(maintenance, run, told)
    _is_there(maintenance, work, asked, answer, beside, told)
    again = answer_of(lake, request)
    assert went_well(again), f"{told}, and asked for again: found {again}"
    expect(seen(lake, NAME), beside.there, f"{told}, and it was asked for again: a reader finds")
    return answer is not None


def _is_answered(maintenance: _Maintenance, run: Run, told: str) -> None:
    assert run.answer is not None, f"{told}: the process died"
    assert maintenance.hook or "failed" not in run.answer, (
        f"{told}: expected it to be done or refused, found {run.answer}"
    )


def _is_there(
    maintenance: _Maintenance, work: Work, asked: Request, answer: Answer | None, beside: _Beside, told: str
) -> None:
    lake, before = beside.table.lake, beside.there
    try:
        found = seen(lake, NAME)
    except LaketierError as error:
        pytest.fail(f"{told}: the table can't be read: {error}")
    if answer is None:
        expect(found, before, f"{told}: a reader finds")
        return
    after = work.after(before, asked)
    done = went_well(answer)
    assert done or work.may_be_late or answer.get("refused", "") == (maintenance.refuses or "nothing"), (
        f"{told}: the other process appends or overwrites, which nothing stands against, and found {answer}"
    )
    if done:
        expect(found, after, f"{told}, and was answered: a reader finds")
    elif lake.plugin.delivery is DeliveryLevel.EXACTLY_ONCE:
        wanted: list[Any] = [before] if "refused" in answer else [before, after]
        assert found in wanted, f"{told}, and ended with {answer}: a reader finds {found}, expected {wanted}"
    beside.there = found
    beside.others += done
    if done and asked["do"] != "keep" and "pipeline" in asked:
        mark = lake.table(NAME).watermark(asked["pipeline"])
        expect(None if mark is None else mark.token.epoch, asked["epoch"], f"{told}: the epoch of its watermark")
