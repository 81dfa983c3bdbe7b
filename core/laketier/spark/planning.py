"""Where Spark plans a streaming write, and why that is when a writer is pickled.

Per epoch, Spark makes a stream's writer three times from the options alone, each in a process of its own: to plan the
tasks, to commit, and to abort. `streamWriter` and the constructor are called in all three, and no method is called for
the plan alone. What tells the planned writer from the others is that only it travels: Spark pickles it for the tasks,
and neither of the others. So its table is prepared when it is pickled, and in no other place; an error that is raised
there has to pass the pickler (`laketier.spark.refusals.through_pickle`).

A batch writer needs none of this. Spark makes it once, and pickles that one to the tasks and to the commit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from laketier.config import LakeConfig
from laketier.spark.refusals import said_once, through_pickle
from laketier.spi import LaketierError


class PlannedWhenPickled(ABC):
    """A writer that plans its tasks once, on the driver, before it goes to them."""

    _config: LakeConfig

    @property
    @abstractmethod
    def is_planned(self) -> bool:
        """Whether `plan` was called."""

    @abstractmethod
    def plan(self) -> None:
        """Prepare the table, and keep what the tasks need. Driver. Raises `LaketierError`."""

    def __getstate__(self) -> dict[str, Any]:
        if not self.is_planned:
            try:
                with said_once(self._config):
                    self.plan()
            except LaketierError as error:
                raise through_pickle(error) from None
        return self.__dict__
