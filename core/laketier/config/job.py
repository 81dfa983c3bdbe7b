"""The settings of a job: what ``laketier run JOB.yaml`` moves, from where to where, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from laketier.config.origins import flatten, read_yaml
from laketier.config.parsing import KeyDoc, Section, dashed, parsed, reference
from laketier.spi import ConfigError


class FilesSource(Section):
    """A folder of files."""

    path: str = Field(description="The folder, a path or URI.")
    format: Literal["parquet", "json", "csv"] = Field("parquet", description="What the files are.")
    columns: str | None = Field(
        None,
        description="The columns as Spark writes them: `id long, at timestamp`. Needed for json and csv; a stream "
        "of Parquet takes the first file's when it is unset.",
    )
    max_files_per_trigger: int | None = Field(None, ge=1, description="Streams: files per epoch, at most.")
    options: dict[str, str] = Field(
        default_factory=dict, repr=False, description="Handed to Spark's reader, for example header."
    )


class RateSource(Section):
    """Rows that Spark generates (`timestamp`, `value`), for trials."""

    rows_per_batch: int = Field(100, ge=1, description="Rows per epoch.")
    batches: int | None = Field(None, ge=1, description="End after this many epochs; endless when unset.")


class Source(Section):
    """The source of a job: exactly one of the three."""

    files: FilesSource | None = Field(None, description="A folder of files.")
    table: dict[str, Any] | None = Field(None, repr=False, description="A laketier table: its lake.* keys.")
    rate: RateSource | None = Field(None, description="Made-up rows; streams only.")


class Trigger(Section):
    """When epochs run: exactly one of the three."""

    available_now: bool = Field(False, description="Take all that is there, in as many epochs as it needs; then end.")
    once: bool = Field(False, description="Take all that is there in one epoch; then end.")
    processing_time: str | None = Field(None, description="For ever, every so often: `10 seconds`.")


class Stream(Section):
    """Makes the job a stream."""

    checkpoint: str = Field(description="Where Spark keeps the stream's progress. One per query; keep it.")
    trigger: Trigger = Field(
        default_factory=lambda: Trigger.model_validate({"available-now": True}),
        description="When epochs run; available-now.",
    )


class Job(Section):
    """A whole job file."""

    source: Source
    sink: dict[str, Any] = Field(
        repr=False, description="The lake.* keys of the table to write (see the configuration reference)."
    )
    mode: Literal["append", "overwrite"] = Field("append", description="Overwrite is for batches.")
    sql: str | None = Field(None, description="A query over the view `source`, to write instead of the source itself.")
    stream: Stream | None = Field(None, description="Present: a stream. Absent: one batch.")
    spark: dict[str, str] = Field(default_factory=dict, repr=False, description="Settings of the Spark session.")


def parse_job(values: Mapping[str, Any], *, origin: str) -> Job:
    """Type a job. Raises `ConfigError`, which names each wrong key."""
    stray = [key for key in flatten(values) if key.startswith("lake.")]
    if stray:
        raise ConfigError(f"{stray[0]} is outside of `sink`", where=origin, fix="Indent it below `sink:`.")
    job = parsed(Job, values, origin=origin)
    _check(job, origin)
    return job


def load_job(path: str | Path) -> Job:
    """Read and type a YAML job. Raises `ConfigError`."""
    return parse_job(read_yaml(path), origin=str(path))


def _check(job: Job, origin: str) -> None:
    given = [name for name in Source.model_fields if getattr(job.source, name) is not None]
    if len(given) != 1:
        raise ConfigError(
            f"source has {' and '.join(given) or 'nothing'}",
            where=origin,
            fix=f"Give exactly one of {', '.join(Source.model_fields)}.",
        )
    if job.stream is None and job.source.rate is not None:
        raise ConfigError("source.rate makes a stream", where=origin, fix="Add stream.checkpoint.")
    if job.stream is None:
        return
    if job.source.table is not None:
        raise ConfigError(
            "source.table can't be a stream yet", where=origin, fix="Remove `stream`, and give the sink lake.epoch."
        )
    if job.mode != "append":
        raise ConfigError("mode overwrite is for batches", where=origin, fix="Remove `mode`, or `stream`.")
    trigger = job.stream.trigger
    chosen = [name for name in Trigger.model_fields if getattr(trigger, name)]
    if len(chosen) != 1:
        raise ConfigError(
            f"stream.trigger has {' and '.join(map(dashed, chosen)) or 'nothing'}",
            where=origin,
            fix=f"Give exactly one of {', '.join(map(dashed, Trigger.model_fields))}.",
        )


def job_reference() -> Iterator[KeyDoc]:
    """The rows of the configuration reference for a job file's keys."""
    return reference(Job)
