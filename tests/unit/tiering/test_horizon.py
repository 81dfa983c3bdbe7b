"""The horizon of orphan collection as it is stored, shown, raised and lowered, on a table in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from laketier.spi import (
    COLLECTOR,
    Collected,
    ConfigError,
    CorruptTable,
    LaketierError,
    RolledBack,
    StorageError,
    TableState,
    Token,
    Watermark,
    host_time,
    new_attempt_id,
)
from laketier.spi.clocks import shifted
from laketier.spi.writer import LATEST
from laketier.tiering import RoundOutcome, TieringRound
from laketier.tiering.horizon import (
    attempts_after,
    clock_of_table,
    horizon_of,
    lower_horizon,
    raise_horizon,
    show_horizon,
)
from memory_lake import MemoryFactory, MemoryTable

HOUR = 3_600_000
DAY = 24 * HOUR


def horizon_at(content: str | None) -> MemoryTable:
    return MemoryTable(watermarks={COLLECTOR: Watermark(Token(COLLECTOR, "r", 0, content=content), "c")})


def raised(table: MemoryTable, horizon: int, **more: Callable[[], int]) -> int:
    return raise_horizon(MemoryFactory(table), table.uuid, horizon, **more)  # type: ignore[arg-type]


def test_it_is_shown_with_when_it_was_set() -> None:
    table = MemoryTable()
    assert show_horizon(table.state) is None
    before = host_time()
    raised(table, 100)
    shown = show_horizon(table.state)
    assert shown is not None
    assert (shown.at, shown.ahead) == (100, 0)
    assert before <= shown.set_at <= host_time()


def test_one_in_the_future_is_shown_with_how_far_it_is() -> None:
    table = MemoryTable()
    now = host_time()
    raised(table, now + DAY)
    shown = show_horizon(table.state)
    assert shown is not None
    assert DAY - HOUR < shown.ahead <= DAY
    with shifted(2 * DAY):
        assert shown.ahead == 0


@pytest.mark.parametrize("content", [None, "", "soon", "-5", str(LATEST + 1), "9" * 5_000, "0" * 20 + "9" * 20])
def test_what_is_no_time_is_not_passed_over(content: str | None) -> None:
    table = horizon_at(content)
    with pytest.raises(CorruptTable, match="which is no time"):
        horizon_of(table.state)
    with pytest.raises(CorruptTable, match="which is no time"):
        TieringRound(MemoryFactory(table)).commit([table.stage(1, attempt=new_attempt_id())])


def test_the_last_moment_is_one() -> None:
    assert horizon_of(horizon_at(str(LATEST)).state) == LATEST


@pytest.mark.parametrize("error", [CorruptTable("no watermark"), OSError("disk gone")])
@pytest.mark.parametrize("asked", [horizon_of, lambda state: attempts_after(state, host_time)])
def test_a_horizon_that_can_not_be_read_is_no_rollback(asked: Callable[[TableState], int], error: Exception) -> None:
    """Whoever took it for one would bar no round by the horizon that is there."""
    with pytest.raises(type(error)):
        asked(MemoryTable(looks=[error]).state)


def test_without_a_horizon_attempts_begin_when_they_do() -> None:
    assert attempts_after(MemoryTable().state, host_time) == 0


def test_the_clock_of_a_table_keeps_no_committer() -> None:
    table = MemoryTable(time=lambda: 77)
    assert clock_of_table(MemoryFactory(table))() == 77
    table.time = lambda: 1 // 0
    with pytest.raises(ZeroDivisionError):
        clock_of_table(MemoryFactory(table))()
    assert table.calls == ["close", "close"]


def test_each_change_is_an_epoch_of_the_collector() -> None:
    table = MemoryTable()
    epochs = []
    for horizon in (0, 50, host_time() + DAY):
        assert raised(table, horizon) == horizon
        epochs.append(table.watermarks[COLLECTOR].token.epoch)
    lower_horizon(MemoryFactory(table), table.uuid)
    epochs.append(table.watermarks[COLLECTOR].token.epoch)
    assert epochs == [0, 1, 2, 3]


@pytest.mark.parametrize("horizon", [5 * DAY, 10 * DAY])
def test_the_first_one_after_a_rollback_is_by_the_clock_that_is_given(horizon: int) -> None:
    """It is no lower than an hour ago by that clock, as rounds were held to that since."""
    table = MemoryTable(looks=[RolledBack("restored")])
    assert raised(table, horizon, clock=lambda: 7 * DAY) == max(horizon, 7 * DAY - HOUR)
    assert table.watermarks[COLLECTOR].token == Token(
        COLLECTOR, table.uuid, 0, content=str(max(horizon, 7 * DAY - HOUR))
    )


def test_one_of_this_very_moment_is_not_lowered() -> None:
    now = host_time()
    table = MemoryTable(time=lambda: now)
    raised(table, now)
    with pytest.raises(ConfigError, match="lies in the future"):
        lower_horizon(MemoryFactory(table), table.uuid)
    assert table.version == 1


def test_a_storage_that_refuses_to_tell_the_time_is_named_and_left() -> None:
    def refused() -> int:
        raise OSError("read-only")

    table = MemoryTable(time=refused)
    with pytest.raises(StorageError, match="asked for the time"):
        lower_horizon(MemoryFactory(table), table.uuid)
    assert table.calls == ["close"]


def test_a_round_is_held_to_the_horizon_by_its_tasks_with_files_alone() -> None:
    """A task without rows has staged nothing that could be deleted."""
    table = MemoryTable()
    horizon = host_time() - HOUR
    raised(table, horizon)
    old = f"{horizon - 1:012x}{'0' * 20}"
    staged = table.stage(1, attempt=new_attempt_id())
    without = type(staged).of(table.info, old, ())
    assert TieringRound(MemoryFactory(table)).commit([staged, without]).outcome is RoundOutcome.PUBLISHED
    exactly = f"{horizon:012x}{'0' * 20}"
    assert TieringRound(MemoryFactory(table)).commit([table.stage(2, attempt=exactly)]).outcome is (
        RoundOutcome.PUBLISHED
    )
    with pytest.raises(Collected, match=r"from \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 on, and orphans from before "):
        TieringRound(MemoryFactory(table)).commit([table.stage(3, attempt=old)])


def test_a_round_that_is_done_is_not_asked_for_the_horizon() -> None:
    table = MemoryTable()
    token = Token("p", "r", 0)
    TieringRound(MemoryFactory(table), token=token).commit([table.stage(1)])
    table.watermarks[COLLECTOR] = horizon_at("soon").watermarks[COLLECTOR]
    tiering = TieringRound(MemoryFactory(table), token=token)
    tiering.begin()
    assert tiering.attempts_after == 0
    with pytest.raises(LaketierError, match="which is no time"):
        TieringRound(MemoryFactory(table), token=Token("p", "r", 1)).begin()
