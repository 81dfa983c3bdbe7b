"""A round whose epoch was in the table when it began, and so wrote nothing."""

from __future__ import annotations

import pytest

from laketier.spi import Decision, StorageError, TableChanged, Token
from laketier.tiering import RoundOutcome, TieringRound, pipelines
from memory_lake import MemoryFactory, MemoryTable

EPOCH = Token("p", "r", 0)


def published() -> MemoryTable:
    table = MemoryTable()
    TieringRound(MemoryFactory(table), token=EPOCH).commit([table.stage(1, 2)])
    return table


def test_it_is_confirmed_without_another_commit() -> None:
    table = published()
    tiering = TieringRound(MemoryFactory(table), token=EPOCH)
    assert tiering.begin() is Decision.DONE
    table.calls.clear()
    result = tiering.confirm_done()
    assert (result.outcome, result.rows) == (RoundOutcome.ALREADY_THERE, 2)
    assert (result.files, result.bytes, result.snapshot_id) == (0, 0, 1)
    assert table.calls == ["open", "close"]
    table.watermarks.clear()
    with pytest.raises(TableChanged, match="not any more"):
        tiering.confirm_done()


def test_a_table_that_can_not_be_read_is_told_and_left() -> None:
    table = published()
    tiering = TieringRound(MemoryFactory(table), token=EPOCH)
    table.calls.clear()
    table.looks = [OSError("expired token")]
    with pytest.raises(StorageError, match="expired token"):
        tiering.confirm_done()
    assert table.calls == ["open", "close"]


def test_a_batch_without_a_pipeline_is_never_done() -> None:
    with pytest.raises(TableChanged, match="not any more"):
        TieringRound(MemoryFactory(published())).confirm_done()


def test_it_is_refused_when_the_epoch_went_away_meanwhile() -> None:
    table = published()
    assert TieringRound(MemoryFactory(table), token=EPOCH).begin() is Decision.DONE
    for token in (EPOCH, Token("p", "r", 1)):
        with pytest.raises(TableChanged, match="not any more"):
            TieringRound(MemoryFactory(MemoryTable()), token=token).confirm_done()


def test_it_is_refused_when_the_pipeline_was_forgotten_at_its_first_epoch() -> None:
    """Its next round is the first epoch again, and the rows of this one are not known to be there."""
    table = published()
    pipelines.forget(MemoryFactory(table), "p")
    with pytest.raises(TableChanged, match="not any more"):
        TieringRound(MemoryFactory(table), token=EPOCH).confirm_done()


def test_it_is_refused_when_the_pipeline_was_rewound_meanwhile() -> None:
    table = published()
    following = Token("p", "r", 1)
    TieringRound(MemoryFactory(table), token=following).commit([table.stage(3)])
    tiering = TieringRound(MemoryFactory(table), token=following)
    assert tiering.begin() is Decision.DONE
    pipelines.rewind(MemoryFactory(table), "p", epoch=0)
    with pytest.raises(TableChanged, match="not any more"):
        tiering.confirm_done()
