"""A table that has caught up costs no look into the lake, and is looked at where it must be."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from laketier.kit.failpoints import observed
from laketier.service.caught_up import TRUSTED_SECONDS
from laketier.service.failpoints import PLANNED
from laketier.service.schedule import State
from laketier.service.worker import TieringWorker
from tiering_service import Service


@dataclass
class CaughtUp:
    """A table whose one row is in the lake, and whose lake folder was taken away: a worker that looks for it makes it
    anew, so that it is seen to have looked."""

    service: Service
    worker: TieringWorker

    def take_away(self) -> None:
        shutil.rmtree(self.service.folder / "lake")

    def looked(self, worker: TieringWorker | None = None) -> bool:
        self.service.later()
        (worker or self.worker).work_once()
        assert self.service.table("t").state is State.SCHEDULED, self.service.table("t").error
        return (self.service.folder / "lake").exists()


@pytest.fixture
def caught_up(make: Callable[..., Service]) -> CaughtUp:
    service = make("t")
    worker = service.worker()
    service.lines["t"].append(1)
    worker.work_once()
    found = CaughtUp(service, worker)
    found.take_away()
    return found


def test_a_caught_up_table_costs_no_look_into_the_lake(caught_up: CaughtUp) -> None:
    rounds = caught_up.service.table("t").rounds_total
    for _ in range(3):
        assert not caught_up.looked()
    table = caught_up.service.table("t")
    assert (table.rounds_total, table.lag_offsets, table.offsets) == (rounds + 3, 0, '{"0":1}')
    caught_up.service.lines["t"].append(2)
    assert caught_up.looked()
    assert caught_up.service.ids(caught_up.worker, "t") == [1, 2], "the lake decides where the log goes on"


def test_a_caught_up_table_that_another_worker_had_is_looked_at(caught_up: CaughtUp) -> None:
    other = caught_up.service.worker()
    assert caught_up.looked(other), "it never saw the lake table"
    caught_up.take_away()
    assert caught_up.looked(), "another worker had it in between"
    caught_up.take_away()
    assert not caught_up.looked()


def test_a_caught_up_table_whose_lost_round_fails_meanwhile_is_no_failure(caught_up: CaughtUp) -> None:
    """The round of a lease that was lost may end at any time, beside that of the next lease."""

    def forget(point: str) -> None:
        if point == PLANNED:
            caught_up.worker._caught_up._seen.clear()

    with observed(forget):
        assert not caught_up.looked()
    assert caught_up.service.table("t").state is State.SCHEDULED
    assert caught_up.looked()


def test_a_caught_up_table_with_a_new_bucket_that_expired_unread_is_looked_at(caught_up: CaughtUp) -> None:
    lines = caught_up.service.lines["t"]
    lines.append(2, bucket=1)
    lines.expire(1, bucket=1)
    caught_up.service.later()
    caught_up.worker.work_once()
    assert (caught_up.service.folder / "lake").exists()


def test_a_caught_up_table_with_a_new_column_is_looked_at(caught_up: CaughtUp) -> None:
    assert not caught_up.looked()
    caught_up.service.lines["t"].describe(columns={"id": "int64", "text": "string", "more": "string"})
    caught_up.worker.tables.discover()
    assert caught_up.looked()


def test_a_caught_up_table_is_looked_at_now_and_then(caught_up: CaughtUp) -> None:
    later = [0.0]
    caught_up.worker._caught_up.clock = lambda: later[0]
    caught_up.service.lines["t"].append(2)
    assert caught_up.looked()
    caught_up.take_away()
    later[0] = TRUSTED_SECONDS - 1
    assert not caught_up.looked()
    later[0] = TRUSTED_SECONDS
    assert caught_up.looked(), "a check that skipped the look does not count as one"
