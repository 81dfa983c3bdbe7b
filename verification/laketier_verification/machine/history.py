"""The state machine: a table, its model, and what drivers, crashes, people and strangers do to it, in any order."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from laketier.kit import FailpointError
from laketier.spi import COLLECTOR, Feature, LaketierError, SourceRange, WriteMode, WriteResult
from laketier.tiering import RoundOutcome
from laketier.tiering.failpoints import ACK_BEFORE, COLLECTION, PUBLISH_AFTER, PUBLISH_BEFORE, ROUND_OPENED
from laketier_verification.machine.failures import Crash, Point, crash, fail, interrupted, passing
from laketier_verification.machine.model import MOST_ADDED, PIPELINES, Model, Round
from laketier_verification.machine.strangers import EXPIRES, STRANGERS
from laketier_verification.machine.subject import Subject
from laketier_verification.machine.tally import Tally

EPOCH, NEW_LEASE, BATCH, RIVAL, LAST = "epoch", "epoch with a new lease", "batch", "rival", "last"
WRONG = ("other input", "gap", "old epoch", "other run", "lower fence", "other range", "unknown pipeline")
KIND = st.sampled_from([EPOCH, EPOCH, NEW_LEASE, BATCH])
SIZES = st.lists(st.integers(0, 3), max_size=2)
PIPELINE = st.sampled_from(PIPELINES)
POINT = st.runner().flatmap(lambda machine: st.sampled_from(machine.points))
MODE = st.runner().flatmap(
    lambda machine: st.sampled_from([WriteMode.APPEND, WriteMode.APPEND, *machine.further_modes])
)
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Flushing to a disk takes most of the time, and what a power cut leaves is `powercut`'s matter."""
BEFORE_THE_EFFECT = (ROUND_OPENED, PUBLISH_BEFORE)
AFTER_THE_EFFECT = (PUBLISH_AFTER, ACK_BEFORE)


@dataclass(frozen=True)
class Waiting:
    """A round whose driver staged its files and then fell asleep."""

    round: Round
    results: tuple[WriteResult, ...]
    added: int


class LakeMachine(RuleBasedStateMachine):
    """Subclassed per format; the tally is the subclass's."""

    format: ClassVar[str]
    tally: ClassVar[Tally]
    points: ClassVar[list[Point]]

    waiting = Bundle("waiting")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix=f"machine-{self.format}-", dir=MEMORY))
        self.subject = Subject(self.format, self.folder)
        self.model = Model()
        # A crashed driver left the table as it is until the next one opens it, which may have to finish a commit:
        # until then only readers look.
        self.is_left_alone = False
        self.turn = 0
        self.tally.examples += 1

    @property
    def further_modes(self) -> list[WriteMode]:
        return [WriteMode.OVERWRITE] if self.subject.has(Feature.OVERWRITE) else []

    @initialize(epochs=st.tuples(*[st.integers(0, 3)] * len(PIPELINES)))
    def start(self, epochs: tuple[int, ...]) -> None:
        """Tables that have seen something: the last epoch of each pipeline came with a new lease."""
        for pipeline, count in zip(PIPELINES, epochs, strict=True):
            for epoch in range(count):
                self.run(NEW_LEASE if epoch == count - 1 else EPOCH, pipeline, [2], WriteMode.APPEND, True)

    # -- rounds -----------------------------------------------------------------------------------------------------

    @rule(kind=KIND, pipeline=PIPELINE, sizes=SIZES, mode=MODE, looks_first=st.booleans())
    def run(self, kind: str, pipeline: str, sizes: list[int], mode: WriteMode, looks_first: bool) -> None:
        """A whole round. After a crash before the effect the next epoch is the same one, with the same rows."""
        round_ = self._round(kind, pipeline, sizes, mode)
        if kind == NEW_LEASE:
            assert round_.token is not None
            round_ = self.model.started[pipeline] = round_.with_token(fence=round_.token.fence + 1)
        result = self.subject.run(round_, self.model.added, looks_first=looks_first)
        assert result.outcome is RoundOutcome.PUBLISHED, f"{round_} ended as {result.outcome}"
        self._landed(round_, self.model.added, f"{kind}: published")

    @rule(kind=KIND, pipeline=PIPELINE, sizes=SIZES, mode=MODE, at=POINT, is_replay=st.booleans())
    def crash(self, kind: str, pipeline: str, sizes: list[int], mode: WriteMode, at: Point, is_replay: bool) -> None:
        """A driver ends between two steps, of a new round or of a replay. Nobody can replay a batch; but what is there
        of it is all of it."""
        last = self.model.last(pipeline) if is_replay else None
        round_ = last or self._round(kind, pipeline, sizes, mode)
        with interrupted(at, crash) as acted:
            try:
                self.subject.run(round_, self.model.added, looks_first=False)
            except Crash:
                self.is_left_alone = True
        if last is None:
            self._settle(round_, acted, "crash")
        else:
            self.tally.count("crash in a replay" if acted else "not interrupted")

    @rule(kind=KIND, pipeline=PIPELINE, sizes=SIZES, mode=MODE, at=POINT, times=st.sampled_from([1, 3]))
    def fail(self, kind: str, pipeline: str, sizes: list[int], mode: WriteMode, at: Point, times: int) -> None:
        """A step below fails: before its effect, or after it, so that only the answer is lost."""
        round_ = self._round(kind, pipeline, sizes, mode)
        outcome: str | None = None
        with interrupted(at, fail, times) as acted:
            try:
                outcome = self.subject.run(round_, self.model.added).outcome.name
            except (FailpointError, LaketierError) as error:
                note(f"raised {error!r}")
        if outcome is not None:
            assert outcome in ("PUBLISHED", "RECOVERED"), outcome
            self._landed(round_, self.model.added, outcome.lower())
            return
        assert acted, "a round failed, and nothing had made it"
        self._settle(round_, acted, "failure")

    @rule(
        pipeline=PIPELINE, sizes=SIZES, looks_first=st.booleans(), how=st.sampled_from(["same", "same", "same", *WRONG])
    )
    def replay(self, pipeline: str, sizes: list[int], looks_first: bool, how: str) -> None:
        """The last epoch again, by a driver that did not see the acknowledgement; or something that is no replay of it
        and must be refused."""
        last = self.model.last(pipeline)
        if how == "unknown pipeline" or last is None:
            unknown = self.model.new_round(pipeline, sizes).with_token(pipeline="unknown", epoch=1 + len(sizes))
            self._refused(unknown)
        elif how == "same":
            result = self.subject.run(last, self.model.added, looks_first=looks_first)
            assert result.outcome is RoundOutcome.ALREADY_THERE, f"a replay of {last} ended as {result.outcome}"
            self._attended("replayed")
        else:
            self._refused(self._wrong(how, pipeline, last, sizes))

    # -- slow drivers -----------------------------------------------------------------------------------------------

    @rule(target=waiting, pipeline=PIPELINE, sizes=SIZES, mode=MODE, kind=st.sampled_from([EPOCH, RIVAL, LAST, BATCH]))
    def stage(self, pipeline: str, sizes: list[int], mode: WriteMode, kind: str) -> Waiting:
        """A driver stages and is slow. The next epoch as any driver would run it, or with rows of its own, a replay of
        the last one, or a batch."""
        round_ = self.model.last(pipeline) if kind == LAST else None
        if round_ is None:
            rival = kind == RIVAL
            round_ = (self.model.new_round if rival else partial(self._round, kind))(pipeline, sizes, mode)
        self.tally.count("staged")
        return Waiting(round_, tuple(self.subject.stage(round_, self.model.added)), self.model.added)

    @rule(waiting=consumes(waiting), is_overtaken=st.booleans(), pipeline=PIPELINE, sizes=SIZES)
    def publish_what_waits(self, waiting: Waiting, is_overtaken: bool, pipeline: str, sizes: list[int]) -> None:
        """However long ago it was staged, and whatever has become of the table since. When it is overtaken, another
        driver publishes between its decision and its attempt, which must lose."""
        round_ = waiting.round
        if not is_overtaken or self._verdict(waiting) is not RoundOutcome.PUBLISHED:
            self._publish(waiting)
            return
        same = round_.token is not None and round_.token.pipeline == pipeline
        other = round_ if same else self.model.next_round(pipeline, sizes)
        added = self.model.added

        def overtake() -> None:
            result = self.subject.run(other, added)
            assert result.outcome is RoundOutcome.PUBLISHED
            self._landed(other, added, "overtook")

        with interrupted(Point(PUBLISH_BEFORE, 1), overtake):
            self._publish(waiting, is_judged_later=True)

    # -- people and strangers ---------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.added < MOST_ADDED and self.subject.has(Feature.ADD_COLUMN))
    @rule()
    def evolve(self) -> None:
        self.subject.add_column(self.model.added)
        self.model.added += 1
        self._attended("evolved")

    @precondition(lambda self: self.subject.has(Feature.ORPHAN_COLLECTION))
    @rule(at=st.sampled_from([None, *COLLECTION]))
    def collect_orphans(self, at: str | None) -> None:
        """Everything that nobody published goes, at once; also what a slow driver still wants to publish. A collector
        that crashes is followed by another."""
        with interrupted(None if at is None else Point(at, 1), crash):
            try:
                self.subject.collect_orphans()
            except Crash:
                self.tally.count("crash of a collector")
        self.subject.collect_orphans()
        self.model.horizon = self._horizon()
        self._attended("collected")

    @precondition(lambda self: self.subject.has(Feature.ORPHAN_COLLECTION))
    @rule(pipeline=PIPELINE, sizes=SIZES, at=POINT)
    def collect_in_a_round(self, pipeline: str, sizes: list[int], at: Point) -> None:
        """The round goes through, or fails and can be run again: what it published is whole."""
        round_ = self.model.next_round(pipeline, sizes)
        is_published = False
        with interrupted(at, self._collect) as acted:
            try:
                is_published = self.subject.run(round_, self.model.added).outcome is RoundOutcome.PUBLISHED
            except (LaketierError, OSError) as error:
                note(f"raised {error!r}")
                assert acted
        self.model.horizon = self._horizon()
        if is_published:
            self._landed(round_, self.model.added, "published beside a collection")
        else:
            self._settle(round_, acted, "collected away")

    @precondition(lambda self: self.format in STRANGERS)
    @rule(which=st.integers(0, 1))
    def strange_maintenance(self, which: int) -> None:
        stranger = STRANGERS[self.format][which]
        if stranger(self.subject.table) == EXPIRES:
            gone = [s for s in self.model.snapshots if not self.subject.can_read(s)]
            for snapshot in gone:
                del self.model.snapshots[snapshot]
        self._attended(stranger.__name__)

    # -- what holds after every step --------------------------------------------------------------------------------

    @invariant()
    def rows_are_those_of_the_model(self) -> None:
        self.tally.steps += 1
        snapshot, rows = self.subject.read()
        self._same(rows, self.model.rows, "the table")
        if snapshot is not None:
            self._same(self.model.snapshots.setdefault(snapshot, Counter(self.model.rows)), rows, f"then {snapshot}")

    @invariant()
    def watermarks_are_those_of_the_model(self) -> None:
        if self.is_left_alone:
            return
        for pipeline, mark in self.subject.watermarks([*PIPELINES, "unknown"]).items():
            last = self.model.last(pipeline)
            assert (None if mark is None else mark.token) == (None if last is None else last.token), pipeline
            assert last is None or (mark is not None and mark.rows == len(last.ids))
            self.tally.comparisons += 1

    @invariant()
    def an_older_snapshot_reads_as_it_did(self) -> None:
        """The oldest one and one more, in turn; `teardown` reads them all."""
        known = sorted(self.model.snapshots)
        self.turn += 1
        for snapshot in {known[0], known[self.turn % len(known)]} if known else ():
            self._reads_as_it_did(snapshot)

    def teardown(self) -> None:
        try:
            for snapshot in self.model.snapshots:
                self._reads_as_it_did(snapshot)
            self.subject.watermarks(PIPELINES)  # a crashed commit is finished: other readers don't
            ids = Counter(key for key, _ in self.model.rows.elements())
            elsewhere = self.subject.read_elsewhere() if ids else None
            if elsewhere is not None:
                self._same(elsewhere[1], ids, elsewhere[0])
        finally:
            self.subject.close()
            shutil.rmtree(self.folder)

    # -- shared by the rules ----------------------------------------------------------------------------------------

    def _publish(self, waiting: Waiting, *, is_judged_later: bool = False) -> None:
        expected = None if is_judged_later else self._verdict(waiting)
        outcome: Any
        try:
            outcome = self.subject.commit(waiting.round, waiting.results).outcome
        except LaketierError as error:
            note(f"raised {error!r}")
            outcome = type(error)
        expected = expected or self._verdict(waiting)
        assert outcome is expected, f"{waiting.round} ended as {outcome}, not as {expected}"
        if outcome is RoundOutcome.PUBLISHED:
            self._landed(waiting.round, waiting.added, "published late")
        else:
            self._attended("late: already there" if isinstance(outcome, RoundOutcome) else f"late: {outcome.__name__}")

    def _verdict(self, waiting: Waiting) -> RoundOutcome | type[Exception]:
        return self.model.verdict(waiting.round, waiting.results, waiting.added)

    def _refused(self, round_: Round) -> None:
        """By the look before anything is written, and by the commit if the driver did not look."""
        expected = self.model.verdict(round_, (), self.model.added)
        assert isinstance(expected, type), f"the model would let {round_} pass"
        results = self.subject.stage(round_, self.model.added)
        for step in (lambda: self.subject.begin(round_), lambda: self.subject.commit(round_, results)):
            try:
                step()
            except expected:
                continue
            raise AssertionError(f"{round_} was not refused as {expected.__name__}")
        self._attended(expected.__name__)

    def _round(self, kind: str, pipeline: str, sizes: list[int], mode: WriteMode) -> Round:
        if kind == BATCH:
            return Round(None, self.model.new_tasks([*sizes, 1]), mode)
        return self.model.next_round(pipeline, sizes, mode)

    def _wrong(self, how: str, pipeline: str, last: Round, sizes: list[int]) -> Round:
        """A round that must not be published after ``last``; with other input than that where nothing else fits."""
        assert last.token is not None
        epoch = last.token.epoch
        new = self.model.new_round(pipeline, sizes)
        if how == "gap":
            return new.with_token(epoch=epoch + 2)
        if how == "old epoch" and epoch > 0:
            return self.model.published[pipeline][epoch // 2]
        if how == "other run":
            return new.with_token(run="another run")
        if how == "lower fence" and last.token.fence > 0:
            return new.with_token(fence=last.token.fence - 1)
        if how == "other range" and last.token.source is not None:
            return new.with_token(source=SourceRange("elsewhere", "further"))
        return new.with_token(epoch=epoch)

    def _collect(self) -> None:
        self.subject.collect_orphans()

    def _settle(self, round_: Round, acted: list[str], what: str) -> None:
        """Find out, by reading alone where that can tell, whether a round without an outcome landed."""
        landed = self._is_there(round_)
        where = acted[-1] if acted else ACK_BEFORE
        if where in BEFORE_THE_EFFECT or where.startswith(("write.", "stage.")):
            assert not landed, f"a round that ended at {where} is in the table"
        if where in AFTER_THE_EFFECT:
            assert landed, f"a round that ended at {where} is not in the table"
        if landed:
            self.model.publish(round_, self.model.added)
        self.tally.count(f"{what}: {'there' if landed else 'not there'}" if acted else "not interrupted")

    def _is_there(self, round_: Round) -> bool:
        if round_.ids:
            _, rows = self.subject.read()
            found = {key for key, _ in rows}
            assert found >= set(round_.ids) or not found & set(round_.ids), f"{round_} is there in part"
            return found >= set(round_.ids)
        assert round_.token is not None
        mark = self.subject.watermarks([round_.token.pipeline])[round_.token.pipeline]
        return mark is not None and mark.token == round_.token

    def _horizon(self) -> int:
        mark = self.subject.watermarks([COLLECTOR])[COLLECTOR]
        return 0 if mark is None else int(mark.token.content or 0)

    def _landed(self, round_: Round, added: int, outcome: object) -> None:
        self.model.publish(round_, added)
        self._attended(outcome)

    def _attended(self, outcome: object) -> None:
        self.is_left_alone = False
        self.tally.count(outcome.name if isinstance(outcome, RoundOutcome) else outcome)

    def _reads_as_it_did(self, snapshot: int) -> None:
        found, rows = self.subject.read(snapshot)
        assert found == snapshot
        self._same(rows, self.model.snapshots[snapshot], f"snapshot {snapshot}")

    def _same(self, found: Counter[Any], expected: Counter[Any], where: str) -> None:
        self.tally.comparisons += 1
        assert found == expected, (
            f"{where}: lost {sorted((expected - found).elements())}, "
            f"not expected {sorted((found - expected).elements())}"
        )


def machine_of(format: str, folder: Path) -> type[LakeMachine]:
    """The machine of one format, with the points that its rounds pass: found by running one, and a replay."""
    subject = Subject(format, folder)
    model = Model()
    round_ = model.next_round(PIPELINES[0], [2, 1])
    passed: list[Point] = []
    for looks_first in (True, False):
        with passing(passed):
            subject.run(round_, 0, looks_first=looks_first)
    subject.close()
    points = list(dict.fromkeys(passed))
    return type(f"{format.title()}Machine", (LakeMachine,), {"format": format, "tally": Tally(), "points": points})
