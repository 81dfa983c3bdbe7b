"""When a writer ends a data file and begins the next: the keys that the options of a format have."""

from __future__ import annotations

from dataclasses import dataclass

from laketier.spi.options import option


@dataclass(frozen=True)
class TimeSettings:
    """When files end by time."""

    target_file_seconds: int | None = option(
        None,
        "A data file is closed, at the next batch, once its first row is this old; never when unset. One that is open "
        "across epochs also while no batch comes.",
        least=1,
    )
    idle_file_seconds: int | None = option(
        None,
        "A data file is closed, at the next batch, once no row has come to it for so long; never when unset. One that "
        "is open across epochs also while no batch comes.",
        least=1,
    )
    target_file_event_seconds: int | None = option(
        None,
        "A data file is closed, at the next batch, once the event time of its task has gone on by so much since the "
        "file began; never when unset. Needs event-time-column.",
        least=1,
    )
    event_time_column: str | None = option(
        None, "The timestamp or date column with the event time of rows, for target-file-event-seconds."
    )


@dataclass(frozen=True)
class RollingSettings(TimeSettings):
    """How files are cut. Rows and bytes are upper aims: a file is closed when it reaches either. The options of a
    format derive from this class, and so have these keys."""

    target_file_rows: int = option(10_000_000, "A data file is closed once it has this many rows.", least=1)
    target_file_bytes: int = option(
        512 * 1024 * 1024, "A data file is closed once it has about this many bytes.", least=1
    )
    buffer_bytes: int = option(256 * 1024 * 1024, "Memory for rows that wait to be written, per task.", least=1)
    max_open_files: int = option(64, "Files of different partitions that one task keeps open.", least=1)
