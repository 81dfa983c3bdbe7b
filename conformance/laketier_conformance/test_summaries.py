"""A commit that sums up the history, or puts a part of it away, is killed before each of its steps, and the power is
cut in and after it.

Nobody has to say which commits do: they leave more files than the others, or fewer.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from laketier.spi import DeliveryLevel, Feature
from laketier.tiering import RoundOutcome
from laketier_conformance.delivery import made_whole, round_of
from laketier_conformance.expect import expect, told
from laketier_conformance.interposed.deciding import NOWHERE
from laketier_conformance.interposed.disk import SYNCS
from laketier_conformance.interposed.powercuts import PowerCut, PowerCuts
from laketier_conformance.interposed.runs import spread
from laketier_conformance.interposed.supervisor import KILL
from laketier_conformance.lake import Table, ids_of
from laketier_conformance.outside import local_folder
from laketier_conformance.seen import Seen, seen

RIVALS = 900_000
KILLED_AT, KILLED_LATE = 8, 4
LOOKED_AT, LOOKED_LATE = 24, 80
"""Among so many commits a checkpoint of each tenth is there twice, and one of each thirty-second."""


def _replay(table: Table, epoch: int) -> RoundOutcome:
    return table.append(epoch).outcome


class _Commits:
    """The commits of another pipeline, between those that are killed."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.done = self.others = 0
        self._sums_up: Callable[[int], bool] = bool
        self.first, self.every = 0, 1

    def other(self) -> None:
        """One more, of a row."""
        self._table.append(self.others, [RIVALS + self.others], pipeline="rival")
        self.others += 1
        self.done += 1

    def empty(self) -> int:
        """One more, of no rows: the cheapest. By how many files the warehouse grew."""
        before = len(self._table.lake.files())
        committer = self._table.committer()
        committer.publish(committer.open(), [], None)
        committer.close()
        self.done += 1
        return len(self._table.lake.files()) - before

    def until_one(self) -> None:
        """Until the next one sums up, as far as that can be told beforehand."""
        while (self.done - self.first) % self.every:
            self.empty()

    def find(self) -> bool:
        """Which of them sum up: those that leave more files, or else fewer. False if none do."""
        self.empty()  # the first may make folders
        begun, grown = self.done, list[int]()
        while len(grown) < LOOKED_LATE:
            grown.append(self.empty())
            if len(grown) < LOOKED_AT:
                continue
            usual, _ = Counter(grown).most_common(1)[0]
            for sums_up in (usual.__lt__, usual.__gt__):
                found = [number for number, files in enumerate(grown, start=begun) if sums_up(files)]
                if len(found) > 1:
                    self._sums_up, self.first, self.every = sums_up, found[-1], found[-1] - found[-2]
                    return True
        return False

    def find_again(self) -> None:
        """The next one, where a commit that was cut off has left its work to the one after it."""
        for _ in range(2 * self.every):
            if self._sums_up(self.empty()):
                self.first = self.done - 1
                return

    def with_epochs(self, epochs: int) -> list[int]:
        """All rows, when so many epochs are there."""
        rows = sorted(i for epoch in range(epochs) for i in ids_of(epoch))
        return rows + [RIVALS + number for number in range(self.others)]


def test_a_commit_that_sums_up_is_killed(
    table: Table, cuts: PowerCuts, unproven: Callable[[str, str], None], pytestconfig: pytest.Config
) -> None:
    """Each tenth commit, or so, leaves more files than the others: a checkpoint, a summary. Or fewer: an archive. It is
    killed before each step from there on. Then another pipeline commits, so what the dead one had in mind is not what
    came to pass. And the power is cut, after its answer and at some moments before: what was taken away or put in
    another place may be gone, and what takes its place not there."""
    if local_folder(table.info.location) is None:
        unproven("a commit that sums up the history", "the table is in no local folder")
        return
    commits = _Commits(table)
    if not commits.find():
        return
    if not (commits.done - commits.first) % commits.every:
        commits.empty()
    runs = cuts.runs
    plain = runs.run(at=NOWHERE, decided=KILL, but=SYNCS, **round_of(0))
    commits.done += 1
    commits.until_one()
    cuts.restart()
    before = seen(table.lake, "db.t")
    tears = table.lake.declares(Feature.POWER_CUT)
    whole = cuts.ask(at=NOWHERE, decided=KILL, but=SYNCS, cut=tears, needed=False, **round_of(1))
    commits.done += 1
    most, seed = pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed")
    within = [] if cuts.cannot else [cuts.within[at] for at in spread(len(cuts.within), most, seed)]
    left, after = [] if cuts.cannot else [*cuts.after, *within], seen(table.lake, "db.t")
    both = itertools.takewhile(lambda pair: pair[0].call == pair[1].call, zip(plain.steps, whole.steps, strict=False))
    begins, total = len(list(both)), len(whole.steps)
    stride = max(1, -(-(total - begins) // (KILLED_AT if commits.every < LOOKED_AT else KILLED_LATE)))
    if stride > 1:
        runs.sight.strides[f"of the steps of a commit that sums up the history, one of {stride}"] = None
    at, missed = begins, 0
    for epoch in itertools.count(2):
        commits.until_one()
        run = runs.run(at=at, decided=KILL, but=SYNCS, **round_of(epoch))
        cut = f"{runs.told(run, 'killed before')}, of a commit that sums up those before it"
        try:
            commits.other()
        except Exception as error:  # noqa: BLE001 - reported
            pytest.fail(f"{cut}: the next round, of another pipeline, ended with {told(error)}")
        rows, more = commits.with_epochs(epoch), commits.with_epochs(epoch + 1)
        made_whole(table, epoch, rows, more, lambda: _replay(table, epoch), cut)  # noqa: B023 - called at once
        commits.done += 1
        if run.answer is None:
            at += stride
        elif at < total and missed < KILLED_LATE:
            missed += 1
            commits.find_again()
        else:
            break
    _lost_its_power(cuts, left, before, after)


def _lost_its_power(cuts: PowerCuts, left: list[PowerCut], before: Seen, after: Seen) -> None:
    """In or after the round of epoch 1, which summed up: what a reader found before, and after it."""
    left = [replace(cut, told=f"a commit that sums up those before it; {cut.told}") for cut in left]
    exactly_once = cuts.lake.plugin.delivery is DeliveryLevel.EXACTLY_ONCE
    replay: dict[str, Any] = {"do": "finish", "table": "db.t", "after": after, "repeats": True, "then": round_of(1)}
    for cut, found in zip(left, cuts.left_by(left, lambda _: replay), strict=True):
        assert "seen" in found, f"{cut.told}: the table can't be read: {found}"
        if cut.answered:
            expect(found["seen"], after, f"{cut.told}: a reader finds")
        else:
            assert found["seen"] in (before, after) or not exactly_once, f"{cut.told}: a part is there: {found['seen']}"
        outcome = {"outcome": found["then"].get("outcome")} if "outcome" in found["then"] else found["then"]
        landed = RoundOutcome.ALREADY_THERE if found["seen"] == after else RoundOutcome.PUBLISHED
        if exactly_once or cut.answered or "outcome" not in outcome:
            expect(outcome, {"outcome": landed.name}, f"{cut.told}: the epoch is replayed")
        expect(found["after"], after, f"{cut.told}: a reader finds after the replay")
