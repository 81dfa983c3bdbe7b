"""A round from the first look to the acknowledgement, and its half on the executors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from laketier.kit import FailpointError
from laketier.kit.failpoints import VARIABLE
from laketier.spi import (
    CommitterInitContext,
    Conflict,
    Decision,
    IncompatibleData,
    LakeCommitter,
    LakeWriter,
    Overtaken,
    SerializationError,
    Stale,
    StorageError,
    Token,
    WriteMode,
    WriteResult,
    WriterInitContext,
)
from laketier.tiering import RetryPolicy, RoundOutcome, TieringRound, write_task
from laketier.tiering.failpoints import PROTOCOL
from laketier.tiering.round import commit_id_of
from memory_lake import SCHEMA, MemoryFactory, MemoryTable, MemoryWriter


def token(epoch: int = 0) -> Token:
    return Token("p", "r", epoch)


def batch(*ids: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(ids, pa.int64()), pa.array(["x"] * len(ids))], schema=SCHEMA)


def commit(table: MemoryTable, epoch: int, *tasks: list[pa.RecordBatch]) -> RoundOutcome:
    factory = MemoryFactory(table)
    tiering = TieringRound(factory, token=token(epoch))
    tiering.begin()
    return tiering.commit_messages([write_task(factory, batches) for batches in tasks]).outcome


def test_rounds_follow_each_other() -> None:
    table = MemoryTable()
    assert commit(table, 0, [batch(1), batch(2, 3)], [batch(4)], []) is RoundOutcome.PUBLISHED
    assert commit(table, 1, [batch(5)]) is RoundOutcome.PUBLISHED
    assert table.rows == [1, 2, 3, 4, 5]
    # In each round one committer looks, and another, which knows the results, publishes.
    assert table.calls.count("close") == 4


def test_a_round_that_is_told_a_state_makes_one_committer_and_looks_once() -> None:
    table = MemoryTable()
    commit(table, 0, [batch(1)])
    made: list[CommitterInitContext] = []

    class Counting(MemoryFactory):
        def create_committer(self, context: CommitterInitContext) -> LakeCommitter[WriteResult]:
            made.append(context)
            return super().create_committer(context)

    factory, state = Counting(table), table.state
    table.calls.clear()
    tiering = TieringRound(factory, token=token(1))
    assert tiering.begin(state) is Decision.PROCEED
    assert (made, table.calls) == ([], []), "the round began without a committer"
    message = write_task(factory, [batch(2)])
    tiering.commit_messages([message])
    assert len(made) == 1
    assert table.calls == ["open", "publish", "close"]


def test_each_retry_looks_afresh_whatever_the_round_began_with() -> None:
    """The rival publishes the very epoch after our look: only a second look can know."""
    table = MemoryTable()
    commit(table, 0, [batch(1)])
    factory, state = MemoryFactory(table), table.state
    tiering = TieringRound(factory, token=token(1))
    tiering.begin(state)

    def rival() -> None:
        commit(table, 1, [batch(9)])

    table.rivals = [rival]
    table.calls.clear()
    assert tiering.commit_messages([write_task(factory, [batch(2)])]).outcome is RoundOutcome.ALREADY_THERE
    ours = [call for call in table.calls if call in ("open", "publish")]
    assert ours == ["open", "publish", "open", "open", "publish", "open"], "ours, the rival's three, and ours again"
    assert table.rows == [1, 9]


class Recording(MemoryFactory):
    """Keeps what committers are made for; the table's calls say when."""

    def __init__(self, table: MemoryTable) -> None:
        super().__init__(table)
        self.made: list[CommitterInitContext] = []

    def create_committer(self, context: CommitterInitContext) -> LakeCommitter[WriteResult]:
        self.made.append(context)
        self.table.calls.append("made")
        return super().create_committer(context)


def test_a_round_has_one_committer_at_a_time_and_closes_each() -> None:
    table = MemoryTable()
    tiering = TieringRound(Recording(table), token=token())
    tiering.begin()
    tiering.commit([table.stage(1)])
    tiering.close()
    assert table.calls == ["made", "open", "close", "made", "open", "publish", "close"]
    table.calls.clear()
    given_up = TieringRound(Recording(table), token=token(1))
    given_up.begin()
    given_up.abort([table.stage(2)], commit_was_called=False)
    given_up.close()
    assert table.calls == ["made", "open", "discard", "close"]
    table.calls.clear()
    for called in (True, False):
        TieringRound(Recording(table), token=token(1)).abort([], commit_was_called=called)
    assert table.calls.count("made") == table.calls.count("close")


@pytest.mark.parametrize("mode", list(WriteMode))
def test_committers_are_made_for_the_rounds_mode_and_commit(mode: WriteMode) -> None:
    table = MemoryTable()
    factory = Recording(table)
    tiering = TieringRound(factory, token=token(), mode=mode, commit_id="c-7")
    tiering.begin()
    tiering.commit([table.stage(1)])
    assert [(context.commit_id, context.mode) for context in factory.made] == [("c-7", mode)] * 2
    assert (table.commits, table.watermarks["p"].commit_id) == (["c-7"], "c-7")


def test_a_commit_without_an_id_is_named_by_its_attempts() -> None:
    """Without attempts there is nothing to know it by, so each has a name of its own."""
    table = MemoryTable()
    factory = Recording(table)
    one, other = table.stage(1, attempt="a"), table.stage(2, attempt="b")
    assert commit_id_of([one, other]) == commit_id_of([other, one])
    names = {commit_id_of(results) for results in ([one], [other], [one, other], [], [])}
    assert (len(names), {len(name) for name in names}) == (5, {32})
    TieringRound(factory).begin()
    TieringRound(factory).begin()
    assert {len(context.commit_id) for context in factory.made} == {32}
    assert factory.made[0].commit_id != factory.made[1].commit_id


def test_a_round_tries_as_often_as_its_policy_says() -> None:
    table = MemoryTable(before=[Conflict("lost")] * 3)
    policy = RetryPolicy(conflicts=2, first_wait_seconds=0.0)
    with pytest.raises(Conflict):
        TieringRound(MemoryFactory(table), token=token(), policy=policy).commit([table.stage(1)])
    assert table.calls.count("publish") == 2


def test_a_merge_is_of_the_snapshot_that_its_round_began_with() -> None:
    table = MemoryTable()
    tiering = TieringRound(MemoryFactory(table), token=token(), mode=WriteMode.UPSERT)
    with pytest.raises(ValueError, match="begins before its tasks"):
        tiering.base_snapshot  # noqa: B018 - the property raises
    with pytest.raises(ValueError, match="begins before its tasks"):
        tiering.commit([table.stage(1)])
    tiering.begin()
    assert tiering.base_snapshot is None
    commit(table, 0, [batch(1)])
    following = TieringRound(MemoryFactory(table), token=token(1), mode=WriteMode.UPSERT)
    following.begin()
    assert following.base_snapshot == 1
    TieringRound(MemoryFactory(table), token=Token("other", "r", 0)).commit([table.stage(2)])
    with pytest.raises(Overtaken):
        following.commit([table.stage(3)])
    assert table.rows == [1, 2]


def test_a_round_may_end_its_range_earlier_and_become_no_other_round() -> None:
    table = MemoryTable()
    tiering = TieringRound(MemoryFactory(table), token=token())
    tiering.begin()
    shorter = Token("p", "r", 0, content="up to 5")
    tiering.change_token(shorter)
    for other in (token(1), Token("q", "r", 0)):
        with pytest.raises(ValueError, match="can't continue as"):
            tiering.change_token(other)
    tiering.commit([table.stage(1)])
    assert table.watermarks["p"].token == shorter
    with pytest.raises(ValueError, match="can't continue as"):
        TieringRound(MemoryFactory(table)).change_token(token())


def test_attempts_are_after_nothing_before_the_round_begins() -> None:
    assert TieringRound(MemoryFactory(MemoryTable())).attempts_after == 0


class Refusing(MemoryWriter):
    """A writer whose storage refuses at one step. It keeps how its block was entered and left."""

    step = ""
    seen: ClassVar[list[Any]] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if self.step == "write":
            raise OSError("disk full")
        super().write(batch)

    def complete(self) -> WriteResult:
        if self.step == "complete":
            raise OSError("disk full")
        return super().complete()

    def __enter__(self) -> LakeWriter[WriteResult]:
        self.seen.append("entered")
        return super().__enter__()

    def __exit__(self, *how: Any) -> None:
        self.seen.append(how)
        super().__exit__(*how)


@pytest.mark.parametrize(
    ("step", "doing"),
    [("create", "a writer was made"), ("write", "rows were staged"), ("complete", "staged files were completed")],
)
def test_a_task_names_what_the_storage_refused(step: str, doing: str) -> None:
    table = MemoryTable()
    Refusing.seen.clear()

    class Factory(MemoryFactory):
        def create_writer(self, context: WriterInitContext) -> LakeWriter[WriteResult]:
            if step == "create":
                raise OSError("disk full")
            writer = Refusing(self.table, context)
            writer.step = step
            return writer

    with pytest.raises(StorageError, match=f"refused while {doing}, because disk full") as caught:
        write_task(Factory(table), [batch(1)])
    if step == "create":
        return
    entered, (kind, error, trace) = Refusing.seen
    assert (entered, kind, error) == ("entered", StorageError, caught.value)
    assert trace is not None
    assert table.calls == ["abort"]


def test_begin_says_what_becomes_of_the_round() -> None:
    table = MemoryTable()
    commit(table, 0, [batch(1)])
    commit(table, 1, [batch(2)])
    factory = MemoryFactory(table)
    assert TieringRound(factory, token=token(2)).begin() is Decision.PROCEED
    assert TieringRound(factory, token=token(1)).begin() is Decision.DONE
    with pytest.raises(Stale):
        TieringRound(factory, token=token(0)).begin()
    assert TieringRound(factory).begin() is Decision.PROCEED


def test_a_task_that_fails_deletes_its_files() -> None:
    table = MemoryTable()

    def source() -> Iterator[pa.RecordBatch]:
        yield batch(1)
        raise OSError("the source broke")

    with pytest.raises(OSError, match="the source broke"):
        write_task(MemoryFactory(table), source())
    assert table.calls == ["abort"]


def test_an_abort_that_fails_too_does_not_hide_what_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    factory = MemoryFactory(MemoryTable())

    def broken(_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(type(factory.create_writer(WriterInitContext(attempt="a"))), "abort", broken)
    with pytest.raises(IncompatibleData):
        write_task(factory, [pa.record_batch({"other": [1]})])


def test_a_task_with_a_batch_that_does_not_fit_deletes_its_files() -> None:
    table = MemoryTable()
    with pytest.raises(IncompatibleData):
        write_task(MemoryFactory(table), [batch(1), pa.record_batch({"other": [1]})])
    assert table.calls == ["abort"]


def test_a_damaged_message_is_refused_before_anything_is_published() -> None:
    table = MemoryTable()
    factory = MemoryFactory(table)
    good = write_task(factory, [batch(1)])
    damaged = good[:-1] + bytes([good[-1] ^ 1])
    with pytest.raises(SerializationError):
        TieringRound(factory, token=token()).commit_messages([good, damaged])
    assert table.version == 0


@pytest.mark.parametrize("commit_was_called", [True, False])
def test_an_abort_is_a_hint(commit_was_called: bool) -> None:
    table = MemoryTable()
    factory = MemoryFactory(table)
    message = write_task(factory, [batch(1)])
    tiering = TieringRound(factory, token=token())
    if commit_was_called:
        tiering.commit_messages([message])
    tiering.abort_messages([message], commit_was_called=commit_was_called)
    assert bool(table.discarded) != commit_was_called
    assert table.rows == ([1] if commit_was_called else [])


def test_every_failpoint_of_the_protocol_is_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one, switched on as an error, changes what the round does; none loses or doubles a row."""
    for point in PROTOCOL:
        table = MemoryTable()
        monkeypatch.setenv(VARIABLE, f"{point}=error@1")
        outcome: object
        try:
            if point == "discard.before":
                commit(table, 0, [batch(1)])
            outcome = commit(table, 0, [batch(1)])
        except FailpointError as error:
            outcome = str(error)
        monkeypatch.delenv(VARIABLE)
        expected = {
            "round.opened": "failpoint round.opened",
            "publish.before": RoundOutcome.PUBLISHED,
            "publish.after": RoundOutcome.RECOVERED,
            "ack.before": "failpoint ack.before",
            "discard.before": "failpoint discard.before",
        }
        assert outcome == expected[point]
        final = commit(table, 0, [batch(1)])
        assert final is (RoundOutcome.PUBLISHED if point == "round.opened" else RoundOutcome.ALREADY_THERE)
        assert table.rows == [1]


def test_the_same_results_committed_twice_are_kept() -> None:
    """A caller whose answer was lost may repeat the whole round: the files in the table are its own."""
    table = MemoryTable()
    staged = [table.stage(1, 2, attempt="a"), table.stage(3, attempt="b")]
    token = Token("p", "r", 0)
    assert TieringRound(MemoryFactory(table), token=token).commit(staged).outcome is RoundOutcome.PUBLISHED
    again = TieringRound(MemoryFactory(table), token=token).commit(list(reversed(staged)))
    assert again.outcome is RoundOutcome.RECOVERED
    assert table.rows == [1, 2, 3]
    assert table.discarded == []


def test_other_results_for_the_same_epoch_are_deleted() -> None:
    table = MemoryTable()
    token = Token("p", "r", 0)
    TieringRound(MemoryFactory(table), token=token).commit([table.stage(1, attempt="a")])
    late = TieringRound(MemoryFactory(table), token=token).commit([table.stage(1, attempt="b")])
    assert late.outcome is RoundOutcome.ALREADY_THERE
    assert table.discarded == ["b-1"]
