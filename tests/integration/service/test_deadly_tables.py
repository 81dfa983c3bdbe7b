"""Workers as processes, and tables that kill them or never answer."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import deadly_lines
from laketier.service.schedule import State
from laketier.service.state import LeaseEnd, RegisteredTable, StateStore
from laketier.service.state.deaths import SET_ASIDE_AFTER
from laketier_verification.lines import LinesTable

PATIENCE_SECONDS = 120


@dataclass
class Deadly:
    """A service of tables, by default three, one of which does ``how``."""

    folder: Path
    how: str
    grace: str = "10min"
    others: Sequence[str] = ("a", "b")
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lines = {name: LinesTable(self.folder / "logs", name).create() for name in (*self.others, "deadly")}
        for lines in self.lines.values():
            lines.append(1, 2)
        self.lines["deadly"].describe(deadly=self.how)
        sink = {"lake.format": "localfile", "lake.warehouse": str(self.folder / "lake")}
        document = {
            "name": "tests",
            "state": f"sqlite:///{self.folder}/state.db",
            "sources": {"src": {"type": "lines", "options": {"path": str(self.folder / "logs")}}},
            "defaults": {"freshness": "1s", "target": "db.{table}", "sink": sink},
            "tables": [{"source": "src"}],
            "lease": "1s",
            "grace": self.grace,
        }
        self.file = self.folder / "service.yaml"
        self.file.write_text(json.dumps(document))
        self.store = StateStore.open(document["state"], service="tests")

    def worker(self) -> subprocess.Popen[str]:
        program = [sys.executable, deadly_lines.__file__, "serve", str(self.file), "--engine", "local"]
        process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process

    def table(self, name: str) -> RegisteredTable:
        return next(each.table for each in self.store.snapshot() if each.table.source_table == name)

    def is_set_aside(self) -> bool:
        return any(each.table.state is State.STOPPED for each in self.store.snapshot())

    def rows(self, name: str) -> list[int]:
        """What a reader that is not ours finds in the live files: every file is of one commit."""
        files = sorted((self.folder / "lake/db" / name).glob("**/*.parquet"))
        return sorted(each for file in files for each in pq.ParquetFile(file).read(["id"])["id"].to_pylist())

    def until(self, condition: Callable[[], bool], told: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, told
            time.sleep(0.02)  # what is waited for is another process

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.store.close()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Deadly]]:
    made: list[Deadly] = []

    def make(how: str, **settings: Any) -> Deadly:
        made.append(Deadly(tmp_path, how, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.slow
def test_a_table_that_kills_every_worker_is_set_aside_and_the_others_are_tiered(make: Callable[..., Deadly]) -> None:
    service = make("kill")
    killed = 0
    while killed < 2 * SET_ASIDE_AFTER:
        worker = service.worker()
        service.until(
            lambda process=worker: process.poll() is not None or service.is_set_aside(),
            "the worker neither died nor set the table aside",
        )
        if worker.poll() is None:
            break
        assert worker.returncode == -signal.SIGKILL, worker.communicate()[1]
        killed += 1
    assert SET_ASIDE_AFTER <= killed <= SET_ASIDE_AFTER + 1, "the first may have had all three"
    aside = service.table("deadly")
    assert (aside.state, aside.deaths) == (State.STOPPED, SET_ASIDE_AFTER)
    assert "set aside: 3 workers in a row died" in str(aside.error)
    service.until(
        lambda: all(service.table(name).rounds_total > 1 for name in ("a", "b")), "the others were not tiered"
    )
    assert {service.table(name).deaths for name in ("a", "b")} == {0}
    assert [service.rows(name) for name in ("a", "b")] == [[1, 2], [1, 2]]
    shown = subprocess.run(
        [sys.executable, deadly_lines.__file__, "service", "status", str(service.file), "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = next(each for each in json.loads(shown.stdout) if each["table"] == "src.deadly")
    assert (told["state"], told["deaths"]) == ("STOPPED", SET_ASIDE_AFTER)
    service.lines["deadly"].describe(deadly=None)
    service.store.resume("src.deadly")
    service.until(lambda: service.table("deadly").rounds_total > 0, "it was not resumed")
    assert (service.table("deadly").deaths, service.rows("deadly")) == (0, [1, 2])


@pytest.mark.deep
@pytest.mark.slow
def test_the_only_table_of_a_service_goes_on_after_each_lost_worker(make: Callable[..., Deadly]) -> None:
    """Hosts that were lost three times in a row stopped it for good."""
    service = make("kill", others=())
    for _ in range(SET_ASIDE_AFTER + 1):
        worker = service.worker()
        service.until(lambda process=worker: process.poll() is not None, "the worker did not die")
        assert worker.returncode == -signal.SIGKILL, worker.communicate()[1]
    service.lines["deadly"].describe(deadly=None)
    service.worker()
    service.until(lambda: service.table("deadly").rounds_total > 0 or service.is_set_aside(), "it did not go on")
    assert (service.table("deadly").deaths, service.rows("deadly")) == (0, [1, 2])
    told = [each.error or "" for each in service.store.rounds(service.table("deadly").id)]
    assert any("no other table of the service is tiered" in each for each in told)


@pytest.mark.slow
def test_a_worker_that_was_told_to_stop_ends_though_a_task_hangs(make: Callable[..., Deadly]) -> None:
    service = make("hang", grace="500ms")
    hanging = service.worker()
    service.until((service.folder / "logs/deadly/hangs").exists, "nothing was read")
    service.until(lambda: service.table("a").rounds_total > 0, "the others do not wait")
    hanging.send_signal(signal.SIGTERM)
    _, told = hanging.communicate(timeout=PATIENCE_SECONDS)
    assert hanging.returncode == 1, told
    assert "cut off: src.deadly" in told
    given_back = service.table("deadly")
    assert (given_back.state, given_back.deaths, given_back.suspect) == (State.PENDING, 0, False)
    assert service.store.rounds(given_back.id)[0].ending is LeaseEnd.RELEASED
    service.lines["deadly"].describe(deadly=None)
    service.lines["deadly"].append(3)
    other = service.worker()
    service.until(lambda: service.table("deadly").rounds_total > 0, "nobody took it over")
    other.send_signal(signal.SIGTERM)
    assert other.wait(PATIENCE_SECONDS) == 0
    assert service.rows("deadly") == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.deep
def test_a_second_signal_waits_no_more(make: Callable[..., Deadly]) -> None:
    service = make("hang")
    hanging = service.worker()
    service.until((service.folder / "logs/deadly/hangs").exists, "nothing was read")
    hanging.send_signal(signal.SIGTERM)
    service.until(
        lambda: any(each.stopping_at is not None for each in service.store.workers()), "the worker did not say so"
    )
    hanging.send_signal(signal.SIGTERM)
    _, told = hanging.communicate(timeout=PATIENCE_SECONDS)
    assert hanging.returncode == 1, told
    assert "cut off: src.deadly" in told
