"""Tasks on Spark whose source says nothing: they keep no other table waiting."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from laketier.rounds import LogAnswer, LogRound, LogTask
from laketier.rounds.configured_logs import open_configured_table
from laketier.spark.log_engine import SparkLogEngine
from laketier_verification.lines import LinesTable

pytestmark = pytest.mark.spark

_PATIENCE_SECONDS = 120.0
HANGING = [f"hangs_{number}" for number in range(4)]
WORKING = [f"works_{number}" for number in range(4)]


@pytest.fixture
def rounds(tmp_path: Path) -> dict[str, LogRound]:
    """Planned, of all tables. Those that will hang have more rows, so each is the first of its Spark task."""
    for name in HANGING + WORKING:
        LinesTable(tmp_path / "logs", name).create().append(*range(3 if name in WORKING else 2_000))
    (tmp_path / "lake").mkdir()
    document: dict[str, Any] = {
        "state": f"sqlite:///{tmp_path}/state.db",
        "sources": {"lines": {"type": "lines", "options": {"path": str(tmp_path / "logs")}}},
        "defaults": {"sink": {"lake.format": "localfile", "lake.warehouse": str(tmp_path / "lake")}},
        "tables": [{"source": "lines"}],
    }
    path = tmp_path / "service.yaml"
    path.write_text(yaml.safe_dump(document))
    made = {}
    for name in HANGING + WORKING:
        table, log = open_configured_table(str(path), f"lines.{name}")
        made[name] = LogRound(log, table.config, table.round_settings())
    return made


def soon(engine: SparkLogEngine, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
    """The answers. Raises `queue.Empty` where the next does not come."""
    told: SimpleQueue[LogAnswer] = SimpleQueue()

    def work() -> None:
        for answer in engine.run(tasks):
            told.put(answer)

    threading.Thread(target=work, daemon=True).start()
    return (told.get(timeout=_PATIENCE_SECONDS) for _ in tasks)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def silent(folder: Path, *names: str) -> Iterator[None]:
    """Opened for reading, the logs wait for a writer. At the end what hangs goes on, and finds nothing in them."""
    logs = [folder / "logs" / name / "0.jsonl" for name in names]
    for log in logs:
        log.rename(log.with_suffix(".aside"))
        os.mkfifo(log)
    try:
        yield
    finally:
        for log in logs:
            with log.open("a"):
                log.with_suffix(".aside").replace(log)


def _tasks(rounds: dict[str, LogRound], *names: str) -> list[LogTask]:
    return [task for name in names for task in rounds[name].plan()]


def test_tables_whose_tasks_hang_hold_up_no_other(
    spark: SparkSession, rounds: dict[str, LogRound], tmp_path: Path
) -> None:
    """A job answered only once all its tasks had ended, and each that hung had a place of Spark for ever."""
    engine = SparkLogEngine(spark, patience_seconds=1.0)
    tasks = _tasks(rounds, *HANGING, *WORKING)
    with silent(tmp_path, *HANGING):
        answers = soon(engine, tasks)
        first = list(islice(answers, len(WORKING)))
        assert {answer.table for answer in first} == {task.table for task in tasks if "works" in task.table}
        for name in WORKING:
            mine = [answer for answer in first if answer.table == rounds[name].config.pipeline]
            assert rounds[name].finish(mine).rows == 3
        until(lambda: engine.late_count == len(HANGING))
        again = [task.begun() for task in tasks if "works" in task.table]
        assert len(list(soon(engine, again))) == len(WORKING), "those that hang have all places of Spark"
    assert {answer.table for answer in answers} == {task.table for task in tasks if "hangs" in task.table}


def test_a_task_that_stays_silent_fails_with_a_sentence_and_is_known_to_be_late(
    spark: SparkSession, rounds: dict[str, LogRound], tmp_path: Path
) -> None:
    engine = SparkLogEngine(spark, patience_seconds=1.0, longest_silence_seconds=3.0)
    tasks = _tasks(rounds, HANGING[0])
    with silent(tmp_path, HANGING[0]):
        (answer,) = soon(engine, tasks)
    assert answer.error is not None
    assert "had no batch for 3 s" in str(answer.error)
    assert "its source or its lake does not answer" in str(answer.error)
    jobs = spark.sparkContext.statusTracker()
    before = len(jobs.getJobIdsForGroup())
    both = list(engine.run([*tasks, *_tasks(rounds, WORKING[0])]))
    assert [answer.error for answer in both] == [None, None]
    assert len(jobs.getJobIdsForGroup()) - before == 2, "it shares a job with a table that is not late"
