"""What Spark says of a job that ended, without its pages around it."""

from __future__ import annotations

import pytest

from laketier.spark.failures import why_ended

CALL = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
ENDED = "Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0"
PYTHON = """Traceback (most recent call last):
  File "worker.py", line 1, in main
ModuleNotFoundError: No module named 'mine'
"""
JAVA = "\n\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handle(PythonRunner.scala:1136)\n\tat more"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            f"{CALL}: org.apache.spark.SparkException: {ENDED}: Python worker exited unexpectedly (crashed).{JAVA}",
            f"{ENDED}: Python worker exited unexpectedly (crashed).",
        ),
        (
            f"{CALL}: org.apache.spark.SparkException: {ENDED}: org.apache.PythonException: {PYTHON}{JAVA}",
            "ModuleNotFoundError: No module named 'mine'",
        ),
        ("the bridge is closed", "the bridge is closed"),
        ("", "RuntimeError"),
    ],
)
def test_the_reason_of_a_job_is_found_between_the_call_and_the_pages_of_java(said: str, why: str) -> None:
    assert why_ended(RuntimeError(said)) == why
