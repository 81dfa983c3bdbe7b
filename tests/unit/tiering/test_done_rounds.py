"""A round whose epoch was in the table when it began, and so wrote nothing."""

from __future__ import annotations

import pytest

from laketier.spi import Decision, TableChanged, Token
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
    assert table.calls == ["open", "close"]


def test_it_is_refused_when_the_epoch_went_away_meanwhile() -> None:
    table = published()
    assert TieringRound(MemoryFactory(table), token=EPOCH).begin() is Decision.DONE
    with pytest.raises(TableChanged, match="not any more"):
        TieringRound(MemoryFactory(MemoryTable()), token=EPOCH).confirm_done()


def test_it_is_refused_when_the_pipeline_was_rewound_meanwhile() -> None:
    table = published()
    following = Token("p", "r", 1)
    TieringRound(MemoryFactory(table), token=following).commit([table.stage(3)])
    tiering = TieringRound(MemoryFactory(table), token=following)
    assert tiering.begin() is Decision.DONE
    pipelines.rewind(MemoryFactory(table), "p", epoch=0)
    with pytest.raises(TableChanged, match="not any more"):
        tiering.confirm_done()
