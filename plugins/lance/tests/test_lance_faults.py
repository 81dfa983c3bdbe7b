"""Processes that are killed, and processes that race."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import lance
import pyarrow as pa
import pytest

from laketier.spi import Decision

DRIVER = """
import sys
from pathlib import Path
import pyarrow as pa
from laketier.spi import CommitterInitContext, LakeStorageConfig, TablePath, Token, WriteMode, new_attempt_id
from laketier_lance.plugin import LancePlugin, LanceOptions
from laketier.tiering import TieringRound, write_task

storage = LancePlugin().create_storage(LakeStorageConfig(sys.argv[1], LanceOptions()))
info = storage.catalog().load_table(TablePath("db", "t"))
factory = storage.tiering_factory(info)

def batch(ids):
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "name": [str(i) for i in ids]})
"""

ONE_EPOCH = (
    DRIVER
    + """
mode = WriteMode(sys.argv[2])
round_ = TieringRound(factory, token=Token("p", "r", 1), mode=mode)
round_.begin()
round_.commit_messages([write_task(factory, [batch([2, 3])])])
"""
)

POINTS = {
    "write.mid_file": False,
    "stage.after_close_before_fsync": False,
    "publish.before_commit": False,
    "publish.between_commit_and_fsync": True,
    "publish.after": True,
}


def run(code, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("point", "landed"), POINTS.items())
def test_a_driver_killed_at_any_step_loses_and_doubles_nothing(table, point, landed):
    table.append(0, 1)
    driver = run(ONE_EPOCH, str(table.warehouse), "append", LAKETIER_FAILPOINTS=f"{point}=kill")
    driver.communicate()
    assert driver.returncode == -signal.SIGKILL
    assert table.ids() == ([1, 2, 3] if landed else [1])
    assert table.round(1).begin() is (Decision.DONE if landed else Decision.PROCEED)
    table.append(1, 2, 3)
    assert table.ids() == [1, 2, 3]
    table.append(2, 4)
    assert table.ids() == [1, 2, 3, 4]
    table.open().validate()


@pytest.mark.parametrize("point", ["publish.before_commit", "publish.between_commit_and_fsync"])
def test_an_error_whose_effect_is_unknown_is_resolved_by_looking(table, monkeypatch, point):
    table.append(0, 1)
    staged = table.stage(table.rows(2, 3))
    round_ = table.round(1)
    monkeypatch.setenv("LAKETIER_FAILPOINTS", f"{point}=error@1")
    round_.commit([staged])
    assert table.ids() == [1, 2, 3]


@pytest.mark.parametrize("point", ["publish.before_commit", "publish.between_commit_and_fsync"])
def test_so_is_that_of_a_batch_without_a_pipeline(table, monkeypatch, point):
    staged = table.stage(table.rows(1))
    round_ = table.round(None)
    monkeypatch.setenv("LAKETIER_FAILPOINTS", f"{point}=error@1")
    round_.commit([staged])
    assert table.ids() == [1]


RIVAL = (
    DRIVER
    + """
pipeline, epochs = sys.argv[2], int(sys.argv[3])
print("ready", flush=True); sys.stdin.readline()
for epoch in range(epochs):
    # Both rivals of a pipeline drive every epoch, with the same rows.
    message = write_task(factory, [batch([1000 * (pipeline == "b") + epoch])])
    TieringRound(factory, token=Token(pipeline, "r", epoch)).commit_messages([message])
"""
)


def test_rival_drivers_of_two_pipelines_and_foreign_appends(table):
    epochs = 12
    rivals = [run(RIVAL, str(table.warehouse), pipeline, str(epochs)) for pipeline in ("a", "b", "a", "b")]
    for rival in rivals:
        assert rival.stdout.readline() == "ready\n", rival.stderr.read()
    for rival in rivals:
        rival.stdin.write("go\n")
        rival.stdin.flush()
    for number in range(epochs):
        lance.write_dataset(pa.Table.from_batches([table.rows(5000 + number)]), table.location, mode="append")
    failures = [error for rival in rivals if (error := rival.communicate()[1]) and rival.returncode]
    # A rival may find itself behind: it is refused, having changed nothing. The other one goes on.
    assert all("Stale" in failure for failure in failures), failures
    for pipeline in ("a", "b"):
        assert table.round(epochs - 1, pipeline=pipeline).begin() is Decision.DONE
    expected = [*range(epochs), *range(1000, 1000 + epochs), *range(5000, 5000 + epochs)]
    assert table.ids() == expected
    table.open().validate()
    # Nothing of the losers is left.
    assert len(table.data_files()) == len(expected)


def test_memory_and_time_of_commits_stay_flat_in_one_process(table):
    import resource
    import time

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    spent = []
    before = 0
    for epoch in range(150):
        start = time.process_time()
        table.append(epoch)
        spent.append(time.process_time() - start)
        if epoch == 50:
            before = peak()
    assert peak() - before < 30  # MB
    assert sorted(spent[-20:])[10] < 4 * sorted(spent[5:25])[10]
