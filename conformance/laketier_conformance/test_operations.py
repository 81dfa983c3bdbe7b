"""Each operation beside an append is killed, fails, is done twice or by halves, loses an answer or its power: it is
there as a whole or not at all, and can be done again.

Nobody has to name its steps: the kernel does. Where it can't, these tests are skipped, and the verdict says so.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from laketier.spi import Feature
from laketier_conformance.children import Child, Patience
from laketier_conformance.expect import expect
from laketier_conformance.foreign import is_less, left_for
from laketier_conformance.harness import Harness
from laketier_conformance.interposed.deciding import NOWHERE, Run
from laketier_conformance.interposed.disk import SYNCS
from laketier_conformance.interposed.effects import Effect
from laketier_conformance.interposed.files import HALVED
from laketier_conformance.interposed.files import TWICE as CHANGES_OF_NAMES
from laketier_conformance.interposed.powercuts import PowerCut, PowerCuts
from laketier_conformance.interposed.refused_locks import is_kept, refused_of
from laketier_conformance.interposed.runs import Interposed, spread
from laketier_conformance.interposed.supervisor import HALVE, KILL, LOSE, TWICE
from laketier_conformance.lake import Lake, ids_of
from laketier_conformance.operations import (
    APPENDS,
    BESIDE,
    EXPIRY,
    NAME,
    OPERATIONS,
    Asked,
    Operation,
    went_well,
)
from laketier_conformance.past import Past
from laketier_conformance.seen import seen

_FIRST = 3
"""Steps at which another table is made: on its way it finds, or makes, the folders of both."""
HAPPENED = {
    KILL: "killed before",
    LOSE: "the answer was lost after",
    TWICE: "done twice:",
    HALVE: "a short write at",
}
Of = tuple[int, int]
"""At most so many steps, drawn by a seed."""


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.needs(*each.needs)] if each.needs else [])
        for each in (*OPERATIONS, EXPIRY)
    ],
)
def test_an_operation_is_cut_off(
    operation: Operation,
    lake: Lake,
    cuts: PowerCuts,
    harness: Harness,
    unproven: Callable[[str, str], None],
    pytestconfig: pytest.Config,
) -> None:
    """Some of its steps in turn: it is killed before one, one fails, one finds itself done, one writes a half, the
    answer to one is lost, a lock is refused. And the power is cut at some moments of a whole one, and after its answer.
    Whatever came upon it, each snapshot that is still listed has its rows, or is refused as one that has ended.
    Of a tool of others half as many: its steps are its own affair, and what the format makes of each is asked all the
    same."""
    if operation.hook and getattr(harness, operation.hook) is None:
        unproven(f"{operation.name} of others, cut off", f"the harness has no {operation.hook}")
        return
    lake.create(name=BESIDE).append(0)
    beside = seen(lake, BESIDE)
    most, seed = pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed")
    some = (-(-most // 2) if operation.hook else most, seed)
    first = Asked.of(operation, lake, 0)
    cuts.restart()
    left = left_for(operation.hook, lake.table(NAME)) if operation.hook else None
    tears = lake.declares(Feature.POWER_CUT)
    # What a tool of others syncs is its own affair, where the format says that its library does not.
    alone = tears or not operation.hook
    whole = cuts.ask(at=NOWHERE, decided=KILL, cut=tears, alone=alone, needed=False, **first.request)
    assert went_well(whole.answer), f"a request to {operation.name} goes well: found {whole.answer}"
    is_kept(whole)
    first.judge(f"a request to {operation.name}", True, first.seen)
    if operation.hook and not is_less(left_for(operation.hook, lake.table(NAME)), left):
        unproven(f"{operation.name} of others, cut off", f"nothing tells that the harness's {operation.hook} did it")
    powerless = [cuts.within[at] for at in spread(len(cuts.within), *some)] + cuts.after
    numbers, past = itertools.count(1), Past(lake, NAME)
    for decided, at, how in _cut_off(cuts, whole, some, operation):
        asked = Asked.of(operation, lake, next(numbers))
        if operation.takes_away:
            past.note(f"{operation.name}, done as a whole or cut off")
        disk = cuts.restart() if decided == errno.EIO else None
        run = cuts.runs.run(at=at, decided=decided, disk=disk, **how, **asked.request)
        told = cuts.runs.told(run, happened_to(run, decided))
        _is_cut_off(asked, run, decided, f"{operation.name}, {told}", cuts, past)
    for at, error in refused_of(whole, *some):
        asked = Asked.of(operation, lake, next(numbers))
        run = cuts.runs.run(at=NOWHERE, refuse=(at, error), **asked.request)
        _is_cut_off(asked, run, error, f"{operation.name}, {cuts.runs.told_of_lock(run, at, error)}", cuts, past)
    if first.request["table"] == NAME and first.after is not None:
        past.is_whole(f"{operation.name}, cut off again and again")
    expect(seen(lake, BESIDE), beside, f"what a reader finds in the table beside the one to {operation.name}")
    if not cuts.cannot:
        _loses_its_power(first, cuts, powerless)
    elif tears:
        cuts.runs.sight.unseen[cuts.cannot] = None


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.needs(*each.needs)] if each.needs else [])
        for each in (*APPENDS, *OPERATIONS)
        if each.name in ("create", "create-again", "adopt", "alter", "drop", "discard", "collect")
    ],
)
def test_a_rival_asks_for_the_same(
    operation: Operation,
    lake: Lake,
    runs: Interposed,
    children: Callable[[int], list[Child]],
    pytestconfig: pytest.Config,
) -> None:
    """Two processes make, change, drop or tidy up one table: the second does all of it before some step of the first.
    Both are answered, or one is told that there is no table any more; there is one table, and it is whole."""
    lake.create(name=BESIDE).append(0)
    first = Asked.of(operation, lake, 0)
    whole = runs.run(at=NOWHERE, but=SYNCS, **first.request)
    assert went_well(whole.answer), f"a request to {operation.name} goes well: found {whole.answer}"
    some = (pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed"))
    patience = Patience()
    for number, at in enumerate(spread(len(whole.steps), *some), start=1):
        asked = Asked.of(operation, lake, number)
        rivals: list[Child] = []
        run = runs.run(
            at=at,
            meanwhile=lambda: rivals.append(_rival(asked.lake, children, asked.request, patience)),  # noqa: B023 - called before the next
            but=SYNCS,
            **asked.request,
        )
        told = f"{operation.name}, {runs.told(run, 'a rival came before')}"
        for who, answer in [("it", run.answer), *(("the rival", each.answer()) for each in rivals)]:
            gone = operation.name == "drop" and (answer or {}).get("refused") == "TableNotFound"
            assert gone or went_well(answer), f"{told}, and {who} ended with {answer}"
        for rival in rivals:
            rival.stop()
        expect(asked.seen, asked.after, f"{told}: a reader finds")
        if asked.after is not None:
            table = lake.table(asked.request["table"])
            epoch = -1 if (mark := table.watermark("later")) is None else mark.token.epoch
            expect(table.append(epoch + 1, [7], pipeline="later").rows, 1, f"{told}: rows of the next round")


def test_another_table_is_made_meanwhile(
    lake: Lake,
    runs: Interposed,
    children: Callable[[int], list[Child]],
    pytestconfig: pytest.Config,
) -> None:
    """Two processes make two tables, the first ones of their database: the second does all of it before some step of
    the first. Neither takes what the other one made on the way, such as a folder of both, for a failure."""
    whole = runs.run(at=NOWHERE, but=SYNCS, do="make", table="whole.t")
    assert went_well(whole.answer), f"a request to create goes well: found {whole.answer}"
    most, seed = pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed")
    patience = Patience()
    for at in sorted({*range(_FIRST), *spread(len(whole.steps), most and _FIRST, seed)}):
        rivals: list[Child] = []

        def rival(rivals: list[Child] = rivals, table: str = f"db{at}.beside") -> None:
            rivals.extend(children(1))
            rivals[0].begin(lake, "make", table=table)
            patience.came(rivals[0])

        run = runs.run(at=at, but=SYNCS, do="make", table=f"db{at}.t", meanwhile=rival)
        told = f"a table is created, {runs.told(run, 'another one of its database came before')}"
        for who, answer in [("it", run.answer), *(("the other", each.answer()) for each in rivals)]:
            assert went_well(answer), f"{told}, and {who} ended with {answer}"
        for each in rivals:
            each.stop()
        names = [f"db{at}.beside", f"db{at}.t"] if rivals else [f"db{at}.t"]
        expect([*map(str, lake.storage.catalog().list_tables(f"db{at}"))], names, f"{told}: the tables of the database")
        table = lake.table(f"db{at}.t")
        table.append(0)
        expect(table.ids, ids_of(0), f"{told}: rows of the table after its first round")


def test_a_rival_fills_the_table_that_is_made(
    lake: Lake, runs: Interposed, children: Callable[[int], list[Child]], pytestconfig: pytest.Config
) -> None:
    """Two processes make one table. Before the first step of the first, when it has seen that there is none, and before
    some other one the second is done, and has written to it: the first finds that table, and puts no empty one over
    it."""
    whole = runs.run(at=NOWHERE, but=SYNCS, do="make", table=NAME)
    assert went_well(whole.answer), f"a request to create a table goes well: found {whole.answer}"
    most, seed = pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed")
    patience = Patience()
    for number, at in enumerate(sorted({0, *spread(len(whole.steps), -(-most // 4), seed)})):
        name = f"{NAME}{number}"
        fill = {"do": "fill", "table": name}
        rivals: list[Child] = []
        run = runs.run(
            at=at,
            meanwhile=lambda: rivals.append(_rival(lake, children, fill, patience)),  # noqa: B023 - called before the next
            but=SYNCS,
            do="make",
            table=name,
        )
        told = f"create, {runs.told(run, 'a rival came before')}"
        for who, answer in [("it", run.answer), *(("the rival", each.answer()) for each in rivals)]:
            assert went_well(answer), f"{told}, and {who} ended with {answer}"
        for rival in rivals:
            rival.stop()
        expected = ids_of(0) if rivals else []
        expect(lake.table(name).ids, expected, f"{told}: rows of the rival, which created the table and wrote to it")


def _rival(lake: Lake, children: Callable[[int], list[Child]], request: dict[str, Any], patience: Patience) -> Child:
    (rival,) = children(1)
    rival.begin(lake, **request)
    patience.came(rival)
    return rival


def _cut_off(cuts: PowerCuts, whole: Run, some: Of, operation: Operation) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """What is decided, at which step, and which steps count."""
    kills = [step for step in whole.steps if step.call not in SYNCS]
    each = [step for step, _ in itertools.groupby(whole.steps)]
    sends = [step for step in each if step.is_send]
    changes = _alone(whole.steps, CHANGES_OF_NAMES)
    writes = _alone([step for step in whole.steps if not step.is_send], HALVED)
    most, seed = some
    if most and max(len(kills), len(each), len(cuts.within)) > most:
        what = "of operations of others" if operation.hook else "of operations that are no append"
        cuts.runs.sight.strides[f"{what}, {most} steps by the seed {seed}; --lake-steps=0 takes each"] = None
    for at in spread(len(kills), *some):
        yield KILL, at, {"but": SYNCS}
    for at in spread(len(each), *some):
        yield errno.EIO, at, {}
    for at in spread(changes, *some):
        yield TWICE, at, {"only": CHANGES_OF_NAMES}
    for at in spread(writes, *some):
        yield HALVE, at, {"only": HALVED}
    for at in spread(len(sends), *some):
        yield LOSE, at, {"sends": True}


def happened_to(run: Run, decided: int) -> str:
    """For messages: what came upon the step. A tool of others may have nothing left to do, and then there is none."""
    if decided in HAPPENED:
        return HAPPENED[decided]
    if not run.steps:
        return "nothing failed before"
    return "a reset of the connection before" if run.decided.is_send else f"{run.failed_with} from"


def _alone(steps: Iterable[Effect], calls: Container[str]) -> int:
    """How many steps there are where no other calls count."""
    return sum(1 for _ in itertools.groupby(step for step in steps if step.call in calls))


def _is_cut_off(asked: Asked, run: Run, decided: int, told: str, cuts: PowerCuts, past: Past) -> None:
    assert decided == KILL or run.answer is not None, f"{told}: the process died"
    assert "raised" not in (run.answer or {}), f"{told}: a failure is logged, and not raised: found {run.answer}"
    if (
        decided == errno.EIO
        and run.at != NOWHERE
        and run.steps
        and run.decided.call in SYNCS
        and went_well(run.answer)
        and not cuts.cannot
    ):
        # After a sync that failed, another one has nothing to do: the system takes the bytes for written.
        worst = cuts.worst
        _loses_its_power(asked, cuts, [replace(worst, answered=1, told=f"{told}, then {worst.told}")])
    if asked.operation.takes_away:
        past.is_whole(told)
    asked.judge_all(told, run.answer)


def _loses_its_power(asked: Asked, cuts: PowerCuts, left: list[PowerCut]) -> None:
    """What a disk may hold of a whole one, found by other processes."""
    finish = {"do": "finish", "table": asked.request["table"], "then": asked.request}
    finish |= {"after": asked.after, "repeats": asked.operation.repeats}
    for cut, answer in zip(left, cuts.left_by(left, lambda _: finish), strict=True):
        told = cut.told if cut.told.startswith(asked.operation.name) else f"{asked.operation.name}, {cut.told}"
        assert "seen" in answer, f"{told}: the table can't be read: {answer}"
        asked.judge(told, bool(cut.answered), answer["seen"])
        asked.judge_again(told, answer["seen"], answer["then"], answer["after"])
