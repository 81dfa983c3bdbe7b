"""The state store among real processes, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.runtime.migration import MigrationContext

import state_child
from laketier.service.schedule import State
from laketier.service.state import LeaseEnd, LeaseLost, Registration, StateStore, Success, Worker

ROUNDS = 10
TABLES = 12


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state.db"
    return request.getfixturevalue("server").new_database()


class Child:
    """A process that runs `state_child`, held at its start until `go`."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", state_child.__file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", self.process.communicate()[1]

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def leases(self) -> list[str]:
        out, err = self.process.communicate(timeout=120)
        assert (self.process.returncode, err) == (0, "")
        return out.split()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def children() -> Iterator[list[Child]]:
    started: list[Child] = []
    yield started
    for child in started:
        child.kill()


def tables(count: int) -> list[Registration]:
    return [
        Registration(source="s", table=f"t{n}", table_id="1", format="f", target=f"t{n}", pipeline=f"t{n}")
        for n in range(count)
    ]


def test_processes_that_start_at_once_get_no_lease_twice(url: str, children: list[Child]) -> None:
    # None of them finds the tables made: they migrate at the same time too.
    children += [Child("acquire", url, f"w{number}", str(ROUNDS)) for number in range(4)]
    for child in children:
        child.wait_until_ready()
    with StateStore.open(url) as store:
        store.register(tables(TABLES))
        for child in children:
            child.go()
        leases = [lease for child in children for lease in child.leases()]
        assert len(leases) == len(set(leases)) >= TABLES * 2
        statuses = store.snapshot()
        # Each fence from 1 on was given once, and each ended once.
        assert Counter(int(lease.split(":")[0]) for lease in leases) == {s.table.id: s.table.fence for s in statuses}
        for status in statuses:
            rounds = store.rounds(status.table.id, 1000)
            assert [ended.fence for ended in rounds] == list(range(status.table.fence, 0, -1))
            assert status.table.rows_total == status.table.fence
            assert status.table.state is State.PENDING


def test_a_database_that_another_migrates_during_the_look_is_no_strangers(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = MigrationContext.get_current_heads

    def get_current_heads(self: MigrationContext) -> tuple[str, ...]:
        heads = asked(self)
        monkeypatch.undo()
        StateStore.open(url).close()
        return heads

    monkeypatch.setattr(MigrationContext, "get_current_heads", get_current_heads)
    with StateStore.open(url) as store:
        store.register(tables(1))
    assert MigrationContext.get_current_heads is asked


def test_what_a_killed_process_held_is_taken_over(url: str, children: list[Child]) -> None:
    children.append(Child("hold", url, "victim"))
    children[0].wait_until_ready()
    with StateStore.open(url) as store:
        store.register(tables(3))
        children[0].go()
        assert children[0].process.stdout is not None
        leased = children[0].process.stdout.readline().split()
        children[0].kill()
        assert len(leased) == 3
        status = store.snapshot()
        assert {s.table.lease_owner for s in status} == {"victim"}
    heir = Worker("heir", "here", 1, "0")
    run_out = max(s.table.lease_until or 0 for s in status)
    with StateStore.open(url, clock=lambda: run_out - 1) as early:
        assert early.acquire(heir, 9, 30) == ()
    with StateStore.open(url, clock=lambda: run_out) as late:
        leases = late.acquire(heir, 9, 30)
        assert {f"{lease.table.id}:{lease.fence - 1}" for lease in leases} == set(leased)
        ended = late.rounds(leases[0].table.id)
        assert [(r.worker, r.ending) for r in ended] == [("victim", LeaseEnd.EXPIRED)]
        assert late.finish_all([(lease, Success()) for lease in leases]) == ()
        with pytest.raises(LeaseLost):
            late.finish(leases[0], Success(epoch=5))
