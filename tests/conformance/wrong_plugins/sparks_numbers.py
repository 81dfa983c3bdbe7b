"""A factory whose writers name files by what Spark tells their task, and by the attempt where it tells nothing."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from typing import TYPE_CHECKING

from crooked import CrookedFactory
from feather_lake.plugin import Writer

from laketier import spi

if TYPE_CHECKING:
    from pyspark import TaskContext


class NumberedFactory(CrookedFactory):
    @abstractmethod
    def name(self, task: TaskContext) -> str | None:
        """None where Spark tells nothing of the kind."""

    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        from pyspark import TaskContext

        task = TaskContext.get()
        name = None if task is None else self.name(task)
        attempt = context.attempt if name is None else hashlib.sha256(name.encode()).hexdigest()[:32]
        return Writer(self.table, attempt)
