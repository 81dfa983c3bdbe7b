"""Files are named by Spark's stage, partition and attempt. In one application these are unique."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crooked import CrookedPlugin
from sparks_numbers import NumberedFactory

from laketier.registry import hookimpl

if TYPE_CHECKING:
    from pyspark import TaskContext

CAUGHT_BY = "test_task_numbers.py::test_another_application_counts_as_the_first"
SAYS = "whose tasks have the same numbers"


class Factory(NumberedFactory):
    def name(self, task: TaskContext) -> str:
        return f"{task.stageId()}-{task.partitionId()}-{task.attemptNumber()}"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("names-files-by-sparks-numbers", factory=Factory)
