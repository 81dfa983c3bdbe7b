"""A format that never answers holds up no run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from conformance_runs import suite_in
from laketier.spi import LakeSource, LakeSplit, ScanPlan
from laketier_conformance import lake

SUPPORT = Path(__file__).parents[1] / "support"
WAITING = '''
import threading
from concurrent.futures import ThreadPoolExecutor

from crooked import CrookedPlugin

from laketier import kit
from laketier.registry import hookimpl


class WaitingCommitter(kit.ManifestCommitter):
    def publish(self, state, results, watermark):
        """For what never comes."""
        {wait}


@hookimpl
def laketier_format():
    return CrookedPlugin("waiting", committer=WaitingCommitter)
'''
_WAITS = {
    "itself": "threading.Event().wait()",
    "for-a-thread": "ThreadPoolExecutor().submit(threading.Event().wait).result()",
}


@pytest.mark.parametrize("wait", _WAITS.values(), ids=_WAITS)
def test_a_publish_that_never_ends_fails_its_test(tmp_path: Path, wait: str) -> None:
    """And the process ends, whatever threads it has left."""
    (tmp_path / "waiting.py").write_text(WAITING.replace("{wait}", wait))
    test = "test_rounds.py::test_a_replay_writes_nothing"
    run = suite_in(tmp_path)(
        "waiting",
        offers={"waiting": "waiting"},
        arguments=[f"--lake-test={test}", "-phasty"],
        paths=[tmp_path, SUPPORT],
    )
    assert (run.code, run.outcome(test)) == (1, "failed"), run.output
    assert "`WaitingCommitter.publish` (waiting.py, line 1" in run.report["results"][test]["detail"]
    assert "gave no answer for 5 s" in run.report["results"][test]["detail"]


def test_who_has_a_limit_of_its_own_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING.replace("{wait}", _WAITS["itself"]))
    test = "test_rounds.py::test_a_replay_writes_nothing"
    run = suite_in(tmp_path)(
        "waiting",
        offers={"waiting": "waiting"},
        arguments=[f"--lake-test={test}", "-phasty", "--timeout=9"],
        paths=[tmp_path, SUPPORT],
    )
    assert "Timeout (>9.0s)" in run.report["results"][test]["detail"], run.output


class _ThreeBatches(LakeSource):
    def plan(self, request: object) -> ScanPlan:
        raise NotImplementedError

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        yield from [pa.record_batch({"id": pa.array([1])})] * 3


def test_each_batch_of_a_read_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a long read that goes on and on would be taken for one that waits."""
    answers: list[None] = []
    monkeypatch.setattr(lake, "heard", lambda: answers.append(None))
    assert len(list(lake.read_split(_ThreeBatches(), LakeSplit(index=0), pa.schema([("id", pa.int64())])))) == 3
    assert len(answers) == 3
