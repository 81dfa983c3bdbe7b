"""Running a job (`laketier.config.job`) on Spark."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from laketier.config import LakeConfig
from laketier.config.job import FilesSource, Job, RateSource, Stream
from laketier.connectors import ParquetFolder
from laketier.registry import configure
from laketier.spark.checkpoint import Checkpoint
from laketier.spark.classic import is_connect
from laketier.spark.failures import GONE, GONE_FIX, cause_of, told_of_spark, why_gone
from laketier.spark.lanes import tier, write
from laketier.spark.progress import EpochReports, Totals, follow
from laketier.spark.reading import read
from laketier.spark.report import EpochProgress
from laketier.spark.session import get_or_create
from laketier.spark.streaming import stream
from laketier.spi import ConfigError, CorruptTable, LaketierError, StorageError
from laketier.tiering import RoundResult

_VIEW = "source"


@dataclass(frozen=True)
class JobResult:
    """The result of a job: ``totals`` for a stream, ``round`` for a batch. ``lane`` says how the rows travelled."""

    config: LakeConfig
    lane: str
    totals: Totals | None = None
    round: RoundResult | None = None


def run_job(
    job: Job,
    *,
    spark: SparkSession | None = None,
    on_epoch: Callable[[EpochProgress], None] | None = None,
    origin: str = "the job",
) -> JobResult:
    """Run a job to its end (a stream with ``processing-time`` has none). Driver.

    A batch of Parquet files or of a table, without ``sql``, goes the split lane; all else is a DataFrame, and so are
    such files on Spark Connect. Raises
    `ConfigError` before any job of Spark's, and where another run has the stream's checkpoint; what the lanes raise;
    `CorruptTable` where the stream's checkpoint is damaged;
    and `StorageError` with Spark's reason where Spark ends the job, or is gone.
    """
    config = configure(job.sink, origin=f"{origin}, sink")
    source_config = None if job.source.table is None else configure(job.source.table, origin=f"{origin}, source.table")
    session = spark or get_or_create()
    try:
        return _run(session, job, config, source_config, on_epoch)
    except PySparkException as error:
        raise _damage(job, error) or told_of_spark(error, str(config.table)) from error
    except LaketierError:
        raise
    except Exception as error:
        why = None if is_connect(session) else why_gone(session.sparkContext)
        if why is None:
            raise
        raise StorageError(GONE, where=str(config.table), why=why, fix=GONE_FIX) from error


def _damage(job: Job, error: PySparkException) -> CorruptTable | None:
    """What to say where Spark ended a stream as its checkpoint is damaged."""
    if job.stream is None or cause_of(error) is not None:
        return None
    with suppress(OSError):  # nobody knows more than Spark then
        found = Checkpoint.open(job.stream.checkpoint)
        why = found.damage() if isinstance(found, Checkpoint) else None
        if why is not None:
            return CorruptTable(
                "the checkpoint of the stream is damaged",
                where=job.stream.checkpoint,
                why=f"{why}. No row is lost or doubled",
                fix="Restore the newest checkpoint from a copy. Or begin with a new one, which reads its source from "
                "the beginning: move the files away that the table has, and run the command that the next error names.",
            )
    return None


def _run(
    session: SparkSession,
    job: Job,
    config: LakeConfig,
    source_config: LakeConfig | None,
    on_epoch: Callable[[EpochProgress], None] | None,
) -> JobResult:
    for key, value in job.spark.items():
        session.conf.set(key, value)
    if job.stream is not None:
        return JobResult(config, "stream", totals=_run_stream(session, job, job.stream, config, on_epoch))
    files = job.source.files
    if job.sql is None and source_config is not None:
        return JobResult(config, "split", round=tier(session, source_config, config, mode=job.mode))
    plain = files is not None and files.format == "parquet" and not (files.columns or files.options)
    if job.sql is None and files is not None and plain and not is_connect(session):
        return JobResult(config, "split", round=tier(session, ParquetFolder(files.path), config, mode=job.mode))
    df = read(session, source_config) if source_config is not None else _files(session, files)
    return JobResult(config, "dataframe", round=write(_query(session, job, df), config, mode=job.mode))


def _run_stream(
    session: SparkSession,
    job: Job,
    settings: Stream,
    config: LakeConfig,
    on_epoch: Callable[[EpochProgress], None] | None,
) -> Totals:
    source = job.source
    df = _rate(session, source.rate) if source.rate is not None else _file_stream(session, source.files)
    trigger: dict[str, Any] = {"availableNow": True}
    if settings.trigger.once:
        trigger = {"once": True}
    if settings.trigger.processing_time:
        trigger = {"processingTime": settings.trigger.processing_time}
    with EpochReports() as reports:
        query = stream(
            _query(session, job, df), config, checkpoint=settings.checkpoint, trigger=trigger, report=reports.path
        )
        limit = source.rate.batches if source.rate is not None else None

        def each(epoch: EpochProgress) -> None:
            if on_epoch is not None:
                on_epoch(epoch)
            if limit is not None and epoch.epoch + 1 >= limit:
                query.stop()

        try:
            return follow(query, reports, each)
        finally:
            query.stop()


def _query(session: SparkSession, job: Job, df: DataFrame) -> DataFrame:
    if job.sql is None:
        return df
    df.createOrReplaceTempView(_VIEW)
    try:
        return session.sql(job.sql)
    except PySparkException as error:
        raise ConfigError("Spark refuses `sql`", where="the job", why=error.getMessage() or str(error)) from error


def _files(session: SparkSession, files: FilesSource | None) -> DataFrame:
    assert files is not None
    reader = session.read.format(files.format).options(**files.options)
    if files.columns:
        reader = reader.schema(_columns(files.columns))
    return _loaded(lambda: reader.load(files.path), files)


def _file_stream(session: SparkSession, files: FilesSource | None) -> DataFrame:
    assert files is not None
    schema = _columns(files.columns) if files.columns else _files(session, files).schema
    reader = session.readStream.format(files.format).options(**files.options).schema(schema)
    if files.max_files_per_trigger is not None:
        reader = reader.option("maxFilesPerTrigger", files.max_files_per_trigger)
    return _loaded(lambda: reader.load(files.path), files)


def _loaded(load: Callable[[], DataFrame], files: FilesSource) -> DataFrame:
    try:
        return load()
    except PySparkException as error:
        raise ConfigError(
            f"Spark can't read {files.path} as {files.format}",
            where="source.files",
            why=(error.getMessage() or str(error)).partition("\n")[0],
            fix="Check the path; give source.files.columns where no file is there yet.",
        ) from error


def _columns(text: str) -> StructType:
    try:
        columns = StructType.fromDDL(text)
    except PySparkException as error:
        raise _no_columns(text) from error
    if not isinstance(columns, StructType):
        raise _no_columns(text)
    return columns


def _no_columns(text: str) -> ConfigError:
    return ConfigError(f"{text!r} are not columns", where="source.files.columns", fix="Write `id long, at timestamp`.")


def _rate(session: SparkSession, rate: RateSource) -> DataFrame:
    return session.readStream.format("rate-micro-batch").option("rowsPerBatch", rate.rows_per_batch).load()
