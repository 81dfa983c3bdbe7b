"""Locks of files that a round takes are refused, are lost, or are taken over by another driver of the same epoch. A
lock is no proof: each row is there once, whatever becomes of it, and a round that can't have one waits or says that it
failed.

Nobody has to name these locks: the kernel does. Where it can't, these tests are skipped, and the verdict says so. Those
of other operations are refused in test_operations.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest

from laketier.spi import LaketierError
from laketier_conformance.children import Child, Patience
from laketier_conformance.delivery import made_whole, round_of
from laketier_conformance.expect import expect
from laketier_conformance.harness import Harness
from laketier_conformance.host_clocks import packages
from laketier_conformance.interposed.deciding import NOWHERE, Run
from laketier_conformance.interposed.disk import SYNCS, WRITES
from laketier_conformance.interposed.refused_locks import is_kept, lock_files_of, refused_of
from laketier_conformance.interposed.runs import Interposed, spread
from laketier_conformance.lake import Table, ids_of
from laketier_conformance.operations import went_well

Take = Callable[[int], list[Child]]
AHEAD = 10 * 86_400_000
"""ms. No lease is longer."""
QUIET = (*SYNCS, *WRITES)


def _expected(epochs: int) -> list[int]:
    return sorted(i for epoch in range(epochs) for i in ids_of(epoch))


class _Twins:
    """Drivers of the same epoch as the one that waits."""

    def __init__(self, table: Table, children: Take) -> None:
        self._table, self._children = table, children
        self._patience = Patience()
        self._there: list[Child] = []

    def come(self, epoch: int, **more: Any) -> None:
        """One more. Behind a lock it waits."""
        (twin,) = self._children(1)
        self._there.append(twin)
        twin.begin(self._table.lake, **round_of(epoch), **more)
        self._patience.came(twin)

    def end(self, run: Run, epoch: int, told: str) -> None:
        """Each row of the epoch is there once, or the replay has to bring it: no driver said that it was."""
        answers = [run.answer or {"failed": "its process died"}]
        while self._there:
            twin = self._there.pop()
            answers.append(twin.answer())
            twin.stop()
        ended = [answer.get("outcome") or answer.get("refused") or answer for answer in answers]
        told = f"{told}, which ended with {ended}"
        _made_whole(self._table, epoch, told, answered=any(map(went_well, answers)))


def _made_whole(table: Table, epoch: int, told: str, *, answered: bool) -> None:
    before, after = _expected(epoch), _expected(epoch + 1)
    try:
        if answered:
            expect(table.ids, after, f"{told}: the epoch was acknowledged, and the rows")
        made_whole(table, epoch, before, after, lambda: table.append(epoch).outcome, told)
    except LaketierError as error:
        pytest.fail(f"{told}: the table can't be read: {error}")


def test_a_lock_of_a_round_is_refused(
    table: Table, runs: Interposed, children: Take, pytestconfig: pytest.Config
) -> None:
    """Another one has it, a signal came, or the file system has none. Where the round goes on without it, another
    driver of its epoch comes. And no lock is lost as the process closes another descriptor of its file."""
    some = (pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed"))
    whole = runs.run(at=NOWHERE, **round_of(0))
    assert went_well(whole.answer), f"nothing came upon a round, and it ended in {whole.answer}"
    is_kept(whole)
    twins, epoch = _Twins(table, children), 1
    for at, error in refused_of(whole, *some):
        run = runs.run(at=NOWHERE, but=QUIET, refuse=(at, error), **round_of(epoch))
        told = runs.told_of_lock(run, at, error)
        assert run.answer is not None, f"{told}: the process died"
        _made_whole(table, epoch, told, answered=went_well(run.answer))
        epoch += 1
        for step in spread(len(run.steps), *some) if _is_without(run, at) else ():
            again = runs.run(
                at=step,
                but=QUIET,
                refuse=(at, error),
                meanwhile=lambda: twins.come(epoch),  # noqa: B023 - called before the next
                **round_of(epoch),
            )
            told = f"{runs.told_of_lock(again, at, error)}, and the round went on without it; "
            twins.end(again, epoch, told + runs.told(again, "another driver of the epoch came before"))
            epoch += 1


def _is_without(run: Run, at: int) -> bool:
    """Whether it was answered, and did not try again to get the lock that was refused."""
    if not went_well(run.answer) or run.again or at >= len(run.locks) or run.locks[at].unlocks:
        return False
    return not any(each.on == run.locks[at].on and not each.unlocks for each in run.locks[at + 1 :])


@pytest.mark.parametrize("how", ["deleted", "lease-over"])
def test_a_lock_is_taken_over(
    how: str, table: Table, runs: Interposed, harness: Harness, children: Take, pytestconfig: pytest.Config
) -> None:
    """A file that stands for a lock is deleted, as one does who takes the round for dead; or its time is over by the
    clock of the other one, which is ahead. Then another driver of the epoch comes."""
    some = (pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed"))
    whole = runs.run(at=NOWHERE, **round_of(0))
    assert went_well(whole.answer), f"nothing came upon a round, and it ended in {whole.answer}"
    files = lock_files_of(whole, lambda: table.ids == _expected(1) and table.watermark() is not None)
    if not files:
        return
    total = sum(1 for step in whole.steps if step.call not in QUIET)
    twins, clock = _Twins(table, children), [AHEAD, sorted(packages(table, harness))]

    def come(epoch: int) -> None:
        if how == "deleted":
            _deleted(files)
        twins.come(epoch, **({} if how == "deleted" else {"clock": clock}))

    for epoch, at in enumerate(spread(total, *some), start=1):
        run = runs.run(at=at, but=QUIET, meanwhile=lambda: come(epoch), **round_of(epoch))  # noqa: B023 - as above
        happened = "its lock file was deleted" if how == "deleted" else "its lease was over"
        twins.end(run, epoch, runs.told(run, f"{happened}, and another driver of the epoch came before"))


def _deleted(files: Iterable[str]) -> None:
    for file in files:
        with suppress(OSError):
            os.rmdir(file) if os.path.isdir(file) else os.unlink(file)
