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
SLOW = """
import time

from crooked import CrookedPlugin

from laketier.registry import hookimpl
from laketier_conformance.harness import Warehouse


class SlowHarness:
    def setup(self, folder):
        time.sleep({seconds})
        return Warehouse(str(folder / "warehouse"))


@hookimpl
def laketier_format():
    return CrookedPlugin("slow")
"""
_TEST = "test_rounds.py::test_a_replay_writes_nothing"
_WAITS = {
    "itself": "threading.Event().wait()",
    "for-a-thread": "ThreadPoolExecutor().submit(threading.Event().wait).result()",
}


@pytest.mark.parametrize("wait", _WAITS.values(), ids=_WAITS)
def test_a_publish_that_never_ends_fails_its_test(tmp_path: Path, wait: str) -> None:
    """And the process ends, whatever threads it has left."""
    (tmp_path / "waiting.py").write_text(WAITING.replace("{wait}", wait))
    run = suite_in(tmp_path)(
        "waiting",
        offers={"waiting": "waiting"},
        arguments=[f"--lake-test={_TEST}", "-phasty"],
        paths=[tmp_path, SUPPORT],
    )
    assert (run.code, run.outcome(_TEST)) == (1, "failed"), run.output
    assert "`WaitingCommitter.publish` (waiting.py, line 1" in run.report["results"][_TEST]["detail"]
    assert "gave no answer for 5 s" in run.report["results"][_TEST]["detail"]


def test_who_has_a_limit_of_its_own_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING.replace("{wait}", _WAITS["itself"]))
    run = suite_in(tmp_path)(
        "waiting",
        offers={"waiting": "waiting"},
        arguments=[f"--lake-test={_TEST}", "-phasty", "--timeout=9"],
        paths=[tmp_path, SUPPORT],
    )
    assert "Timeout (>9.0s)" in run.report["results"][_TEST]["detail"], run.output


def test_who_takes_the_signal_of_patience_is_named(tmp_path: Path) -> None:
    """Nothing can be interrupted then: the process ends, with its report."""
    takes = "import signal; signal.signal(signal.SIGALRM, self._hears); threading.Event().wait()"
    hears = "\n    def _hears(self, *_):\n        pass\n\n\n@hookimpl"
    (tmp_path / "waiting.py").write_text(WAITING.replace("{wait}", takes).replace("\n@hookimpl", hears))
    run = suite_in(tmp_path)(
        "waiting",
        offers={"waiting": "waiting"},
        arguments=[f"--lake-test={_TEST}", "-phasty"],
        paths=[tmp_path, SUPPORT],
    )
    assert (run.code, run.outcome(_TEST)) == (1, "failed"), run.output
    detail = run.report["results"][_TEST]["detail"]
    assert "`WaitingCommitter.publish` (waiting.py, line 1" in detail
    assert "could not be interrupted, as `waiting.WaitingCommitter._hears` has SIGALRM" in detail


@pytest.mark.parametrize(("seconds", "outcome"), [(7, "passed"), (600, "failed")])
def test_a_harness_has_longer_to_set_up_what_it_needs(tmp_path: Path, seconds: int, outcome: str) -> None:
    (tmp_path / "slow.py").write_text(SLOW.replace("{seconds}", str(seconds)))
    run = suite_in(tmp_path)(
        "slow",
        offers={"slow": "slow"},
        harnesses={"slow": "slow:SlowHarness"},
        arguments=[f"--lake-test={_TEST}", "-phasty"],
        paths=[tmp_path, SUPPORT],
    )
    assert run.outcome(_TEST) == outcome, run.output
    says = "`SlowHarness.setup` (slow.py, line 12) gave no answer for 10 s, and was ended: expected an answer of the ha"
    assert outcome == "passed" or says in run.report["results"][_TEST]["detail"]


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
