"""Tasks whose numbers come again: those of another application, of a stage that is run again, and of processes in
containers. What tells two attempts apart is the id that laketier gives to each, and nothing else.

Where pyspark is installed, it tells them what Spark's tasks are told. Each has a copy of its factory, as there.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from laketier.spi import LakeTieringFactory, LakeWriter, WriteResult, WriterInitContext, new_attempt_id, unpack
from laketier.tiering import RoundOutcome
from laketier_conformance import spark_numbers
from laketier_conformance.children import Child
from laketier_conformance.expect import expect, goes_well
from laketier_conformance.lake import Table, batch, ids_of, token


@pytest.fixture(autouse=True)
def _said(unproven: Callable[[str, str], None]) -> None:
    if not spark_numbers.is_there():
        unproven("numbers that Spark gives to tasks", "pyspark is not installed")


def _copy(factory: bytes) -> LakeTieringFactory[Any]:
    """What one task is sent."""
    copy: LakeTieringFactory[Any] = pickle.loads(factory)  # noqa: S301 - as Spark does
    return copy


def _staged(table: Table, *tasks: list[int]) -> list[WriteResult]:
    """What the tasks of an application leave that has run nothing before."""
    sent, serializer = pickle.dumps(table.factory), table.factory.write_result_serializer
    results = []
    for number, ids in enumerate(tasks):
        with spark_numbers.task(number, spark_numbers.OF_A_BATCH):
            results.append(unpack(serializer, table.stage(ids, number, _copy(sent))))
    return results


def test_another_application_counts_as_the_first(table: Table) -> None:
    """A driver dies when its tasks have written. The next one runs the epoch again, and a third one the next epoch:
    tasks of all have the same numbers. What the dead one left is nobody's, and no row is there twice."""
    _staged(table, ids_of(0, 0), ids_of(0, 1))
    told = "epochs of applications whose tasks have the same numbers of stage, partition and attempt"
    with goes_well(f"{told} are published. A file is named by its attempt's id, not by such numbers"):
        for epoch in range(2):
            table.commit(_staged(table, ids_of(epoch, 0), ids_of(epoch, 1)), token(epoch))
        found = table.ids
    expect(found, [i for epoch in range(2) for split in (0, 1) for i in ids_of(epoch, split)], f"rows of {told}")


def test_a_stage_is_run_again_while_its_tasks_go_on(table: Table) -> None:
    """Spark lost a result, and runs the stage again: one of its tasks is there twice, with the same numbers. The driver
    commits what comes first. The other one goes on, with its rows in another order, and ends; a third one begins after
    the commit, and is killed as it writes."""
    sent = pickle.dumps(table.factory)

    def begun() -> LakeWriter[WriteResult]:
        return _copy(sent).create_writer(WriterInitContext(attempt=new_attempt_id(), split_index=0))

    def run() -> None:
        first, slow = begun(), begun()
        for each in (first, slow):
            each.write(batch(rows[:2]))
        first.write(batch(rows[2:]))
        table.commit([first.complete()], token(0))
        late = begun()
        late.write(batch(rows[:1]))
        found["begins"] = table.ids
        slow.write(batch([*rows[:1:-1], *rows]))
        slow.complete()
        found["ends"] = table.ids
        late.abort()
        found["is aborted"] = table.ids

    rows, found = ids_of(0), dict[str, list[int]]()
    told = "a stage is run again, while a task of its first run goes on, whose numbers are the same"
    with (
        spark_numbers.task(0, spark_numbers.OF_A_STREAM),
        goes_well(f"{told}; one is published, another one ends after that, and one begins then and is aborted"),
    ):
        run()
    for then, ids in found.items():
        expect(ids, rows, f"{told}: rows of the one that was published, once another one {then}")
    outcomes = [table.append(epoch).outcome for epoch in (0, 1)]
    expect(outcomes, [RoundOutcome.ALREADY_THERE, RoundOutcome.PUBLISHED], f"{told}: the replay, and the next epoch")
    expect(table.ids, rows + ids_of(1), f"{told}: rows after the next epoch")


def test_processes_of_containers_have_one_number(table: Table, children: Callable[[int], list[Child]]) -> None:
    """Executors on other hosts, each of which is process 1 of its container, and has made as many files. One writes all
    its rows while another one waits in the middle of its own."""
    factory = table.factory
    request: dict[str, Any] = {"factory": base64.b64encode(pickle.dumps(factory)).decode(), "contained": True}
    first, second = children(2)
    told = "two tasks write at once, in containers, where each process has the number 1"
    first.begin(table.lake, "stage_slowly", batches=[ids_of(0, 0), ids_of(0, 1)], **request)
    begun = first.answer()
    assert begun == {"ready": True}, f"{told}: the first one begins, and found {begun}"
    answers = [second.ask(table.lake, "stage_slowly", batches=[ids_of(0, 2)], **request)]
    first.go()
    answers.append(first.answer())
    results = []
    for answer in answers:
        assert "staged" in answer, f"{told}. A file is named by its attempt's id alone: found {answer}"
        results.append(unpack(factory.write_result_serializer, base64.b64decode(answer["staged"])))
    with goes_well(f"{told}, and are published"):
        table.commit(results, token(0))
        found = table.ids
    expect(found, [i for split in range(3) for i in ids_of(0, split)], f"rows where {told}")
