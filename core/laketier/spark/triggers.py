"""Refuses streams that are not cut into micro-batches.

With a continuous trigger Spark commits epochs beside tasks that never end. A Python data source's tasks answer when
they end, so all it commits is empty, and its checkpoint takes the rows for written. Spark asks no sink in Python
whether it can do with that, so each place that can tell refuses: the plan by the checkpoint, a task by its settings.
"""

from __future__ import annotations

from pyspark import TaskContext

from laketier.spi import ConfigError

MICRO_BATCHES = "Use .trigger(processingTime=…) or .trigger(availableNow=True): only micro-batches are written once."
_CONTINUOUS = "__is_continuous_processing"


def refuse_continuous_task(table: str) -> None:
    """Executor. Raises `ConfigError`."""
    context = TaskContext.get()
    if context is not None and context.getLocalProperty(_CONTINUOUS) == "true":
        raise continuous_refused(table)


def continuous_refused(table: str) -> ConfigError:
    """What the plan of an epoch and its tasks raise."""
    return ConfigError(
        "a continuous trigger is not supported",
        where=table,
        why="Spark would commit epochs before their rows are written, and lose them",
        fix=MICRO_BATCHES,
    )
