"""The ways out of a refusal, each followed by the round that it lets through."""

from __future__ import annotations

import pytest

from laketier.spi import ConfigError, Conflict, Gap, Token, TokenMismatch, UnknownOutcome, Watermark, WatermarkLost
from laketier.tiering import RetryPolicy, RoundOutcome, TieringRound, pipelines
from memory_lake import MemoryFactory, MemoryTable


@pytest.fixture
def table() -> MemoryTable:
    return MemoryTable()


def publish(table: MemoryTable, epoch: int, *rows: int, run: str = "run-1") -> RoundOutcome:
    token = Token("p", run, epoch)
    return (
        TieringRound(MemoryFactory(table), token=token).commit([table.stage(*rows, attempt=f"{run}-{epoch}")]).outcome
    )


def test_show_tells_unknown_from_known(table: MemoryTable) -> None:
    assert pipelines.show(table.state, "p") is None
    publish(table, 0, 1, 2)
    watermark = pipelines.show(table.state, "p")
    assert watermark is not None
    assert (watermark.token.epoch, watermark.rows) == (0, 2)


def test_adopt_lets_a_new_checkpoint_continue(table: MemoryTable) -> None:
    publish(table, 0, 1)
    with pytest.raises(TokenMismatch):
        publish(table, 1, 2, run="run-2")
    pipelines.adopt(MemoryFactory(table), "p", run="run-2", epoch=0)
    assert publish(table, 1, 2, run="run-2") is RoundOutcome.PUBLISHED
    assert table.rows == [1, 2]


def test_adopt_accepts_a_gap(table: MemoryTable) -> None:
    publish(table, 0, 1)
    with pytest.raises(Gap):
        publish(table, 5, 6)
    pipelines.adopt(MemoryFactory(table), "p", run="run-1", epoch=4)
    assert publish(table, 5, 6) is RoundOutcome.PUBLISHED


def test_adopt_keeps_the_fence(table: MemoryTable) -> None:
    fenced = Token("p", "run-1", 0, fence=7)
    TieringRound(MemoryFactory(table), token=fenced).commit([])
    watermark = pipelines.adopt(MemoryFactory(table), "p", run="run-2", epoch=3)
    assert watermark.token.fence == 7


def test_rewind_lets_later_epochs_be_written_again(table: MemoryTable) -> None:
    for epoch in range(3):
        publish(table, epoch, epoch)
    pipelines.rewind(MemoryFactory(table), "p", epoch=0)
    assert publish(table, 1, 10) is RoundOutcome.PUBLISHED


@pytest.mark.parametrize("epoch", [2, 3])
def test_rewind_goes_back_only(table: MemoryTable, epoch: int) -> None:
    for number in range(3):
        publish(table, number, number)
    with pytest.raises(ConfigError, match="can't go back"):
        pipelines.rewind(MemoryFactory(table), "p", epoch=epoch)


def test_forget_makes_the_pipeline_new(table: MemoryTable) -> None:
    publish(table, 0, 1)
    publish(table, 1, 2)
    pipelines.forget(MemoryFactory(table), "p")
    with pytest.raises(WatermarkLost):
        publish(table, 2, 3)
    assert publish(table, 0, 4, run="run-9") is RoundOutcome.PUBLISHED


@pytest.mark.parametrize("change", ["rewind", "forget"])
def test_what_is_not_known_can_not_be_changed(table: MemoryTable, change: str) -> None:
    factory = MemoryFactory(table)
    with pytest.raises(WatermarkLost, match="does not know pipeline"):
        pipelines.rewind(factory, "p", epoch=0) if change == "rewind" else pipelines.forget(factory, "p")


def test_a_lost_answer_is_found_and_set_once(table: MemoryTable) -> None:
    publish(table, 0, 1)
    table.after.append(TimeoutError("answer lost"))
    pipelines.adopt(MemoryFactory(table), "p", run="run-2", epoch=5)
    assert table.watermarks["p"].token.epoch == 5
    assert len(table.commits) == 2


QUICK = RetryPolicy(conflicts=30, unknowns=3, first_wait_seconds=0.0, longest_wait_seconds=0.0)


def set_to(table: MemoryTable, epoch: int) -> Watermark:
    return pipelines.set_watermark(MemoryFactory(table), "p", lambda _: Token("p", "r", epoch), policy=QUICK)


def test_conflicts_are_tried_again_and_end(table: MemoryTable) -> None:
    table.before.extend([Conflict("lost")] * 29)
    assert set_to(table, 1).token.epoch == 1
    table.before.extend([Conflict("lost")] * 30)
    with pytest.raises(Conflict, match="was not set: of 30 attempts each lost"):
        set_to(table, 2)
    assert table.watermarks["p"].token.epoch == 1


def test_what_is_unknown_to_the_end_is_told_so(table: MemoryTable) -> None:
    table.before.extend([Conflict("lost"), TimeoutError("no answer"), TimeoutError("no answer"), TimeoutError("no")])
    with pytest.raises(UnknownOutcome, match="could not be set in 4 attempts, because no"):
        set_to(table, 2)


def test_the_last_answer_may_be_the_one_that_got_lost(table: MemoryTable) -> None:
    table.before.extend([TimeoutError("no answer"), TimeoutError("no answer")])
    table.after.extend([TimeoutError("answer lost")])
    assert set_to(table, 2).token.epoch == 2
    assert len(table.commits) == 1
