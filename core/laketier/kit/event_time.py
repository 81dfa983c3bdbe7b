"""Event time, by which files end: the time in a column of the rows, which goes on as rows come.

A task's event time is the greatest that it has seen. A file begins at the task's event time of that moment, or at the
least time of its own first rows where that is later. So rows that come late do not end their file at once, which would
make a file of each late batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.kit.time_spans import PER_SECOND
from laketier.spi.errors import ConfigError

_DAY = 86_400


class EventTimeSettings(Protocol):
    """The part of `laketier.kit.rolling.RollingSettings` that is about event time."""

    @property
    def event_time_column(self) -> str | None:
        """The column."""

    @property
    def target_file_event_seconds(self) -> int | None:
        """How far the event time goes on before a file ends."""


class EventTime:
    """The event time of one task. Times are numbers of the column's own unit since 1970."""

    def __init__(self, column: str, kind: pa.DataType, seconds: int) -> None:
        self._column = column
        self._seconds = seconds
        self._unit = PER_SECOND[kind.unit] if pt.is_timestamp(kind) else 1
        self._days = pt.is_date32(kind)
        self.greatest: int | None = None
        """The greatest time that was seen; None before the first."""

    @classmethod
    def of(cls, settings: EventTimeSettings, schema: pa.Schema) -> EventTime | None:
        """For a table of ``schema``. None where files do not end by event time. Raises as `check_event_time`."""
        check_event_time(settings, schema)
        column, seconds = settings.event_time_column, settings.target_file_event_seconds
        return None if column is None or seconds is None else cls(column, schema.field(column).type, seconds)

    def ends(self, batches: Sequence[pa.RecordBatch]) -> tuple[int, int] | None:
        """The least and the greatest time of rows. None where none has one."""
        found = [pc.min_max(_numbers(batch.column(self._column))) for batch in batches]
        times = [(each["min"].as_py(), each["max"].as_py()) for each in found if each["min"].is_valid]
        return (min(low for low, _ in times), max(high for _, high in times)) if times else None

    def is_past(self, begun: int | None, now: int | None) -> bool:
        """Whether a file that began at the time ``begun`` ends at ``now``."""
        if begun is None or now is None:
            return False
        return (now - begun) * (_DAY if self._days else 1) >= self._seconds * self._unit


def _set(value: object) -> str:
    return "unset" if value is None else repr(value)


def check_event_time(settings: EventTimeSettings, schema: pa.Schema) -> None:
    """Raise `ConfigError` for settings that don't fit a table of ``schema``. Driver, and where a writer is made."""
    column, seconds = settings.event_time_column, settings.target_file_event_seconds
    if (column is None) != (seconds is None):
        raise ConfigError(
            f"target-file-event-seconds is {_set(seconds)}, and event-time-column is {_set(column)}",
            why="a file ends by the time in a column, so both are set, or none",
            fix=f"Set {'event-time-column' if column is None else 'target-file-event-seconds'}, too.",
        )
    if column is None:
        return
    if column not in schema.names:
        raise ConfigError(
            f"event-time-column is {column!r}, which is not a column", fix=f"The columns are {', '.join(schema.names)}."
        )
    kind = schema.field(column).type
    if not (pt.is_timestamp(kind) or pt.is_date32(kind)):
        raise ConfigError(
            f"event-time-column is {column!r}, of type {kind}",
            why="event time is a timestamp or a date",
            fix="Name another column, or cast this one in the query.",
        )


def _numbers(column: pa.Array) -> pa.Array:
    return column.cast(pa.int32()) if pt.is_date32(column.type) else column.view(pa.int64())
