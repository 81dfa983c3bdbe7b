"""Files of a stream are named by its query, its batch, and Spark's partition and attempt: no other application has the
same. But a stage that is run again has them, while a task of its first run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crooked import CrookedPlugin
from sparks_numbers import NumberedFactory

from laketier.registry import hookimpl

if TYPE_CHECKING:
    from pyspark import TaskContext

CAUGHT_BY = "test_task_numbers.py::test_a_stage_is_run_again_while_its_tasks_go_on"
SAYS = "a stage is run again, while a task of its first run goes on"


class Factory(NumberedFactory):
    def name(self, task: TaskContext) -> str | None:
        query, batch = (task.getLocalProperty(key) for key in ("sql.streaming.queryId", "streaming.sql.batchId"))
        return None if query is None else f"{query}-{batch}-{task.partitionId()}-{task.attemptNumber()}"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("names-files-by-query-and-batch", factory=Factory)
