"""A round from the first look to the acknowledgement, and its half on the executors."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from laketier.kit import FailpointError
from laketier.kit.failpoints import VARIABLE
from laketier.spi import (
    CommitterInitContext,
    Decision,
    IncompatibleData,
    LakeCommitter,
    SerializationError,
    Stale,
    Token,
    WriteResult,
    WriterInitContext,
)
from laketier.tiering import RoundOutcome, TieringRound, write_task
from laketier.tiering.failpoints import PROTOCOL
from memory_lake import SCHEMA, MemoryFactory, MemoryTable


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
