"""The day of a partition is that of its midnight in UTC, as the clocks of the task's host show it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from local import partitioning_by

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.partitioning import text_of

CAUGHT_BY = "test_surroundings.py::test_moments_of_processes_in_other_zones[day]"
SAYS = "by which rows are parted"


def _local(field: spi.PartitionField, value: Any) -> str | None:
    if type(value) is date:
        midnight = datetime(value.year, value.month, value.day, tzinfo=UTC)
        value = datetime.fromtimestamp(midnight.timestamp()).date()
    return text_of(field, value)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return partitioning_by("parts-days-at-local-midnight", "text_of", _local)
