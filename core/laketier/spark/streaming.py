"""Starting a stream under our Arrow setting, with its figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from laketier.config import LakeConfig
from laketier.registry import naming_commands
from laketier.spark.arrow_batches import arrow_batches
from laketier.spark.checkpoint import Checkpoint
from laketier.spark.data_source import REPORT_OPTION, require_stream_keys
from laketier.spark.schema import table_schema
from laketier.spark.target import as_config, prepare
from laketier.spark.threads import known_here
from laketier.spi import ConfigError, Token, WriteMode


def stream(
    df: DataFrame,
    config: LakeConfig | Mapping[str, Any],
    *,
    checkpoint: str,
    trigger: Mapping[str, Any] | None = None,
    output_mode: str = "append",
    query_name: str | None = None,
    report: Path | None = None,
) -> StreamingQuery:
    """Start ``df.writeStream.format("laketier")``, with the table prepared first and our Arrow setting held for the
    query's own session, which Spark clones when it starts. Driver.

    ``trigger``: the keywords of ``DataStreamWriter.trigger``, for example ``{"availableNow": True}``. ``report``: the
    path of an `laketier.spark.progress.EpochReports`. Raises `ConfigError`, `PluginError` and `TableError` here, before
    any epoch.
    """
    config = as_config(config, df.sparkSession)
    require_stream_keys(config)
    if output_mode not in ("append", "complete"):
        raise ConfigError(
            f"output mode {output_mode!r} is not one of append, complete",
            where=str(config.table),
            why="the rows of a query replace no earlier ones; those of a log do, in tables with a primary key",
            fix="Use complete, or a watermark with append; for a log of changes, `laketier serve` with `primary-key`.",
        )
    schema = table_schema(df.schema)
    mode = WriteMode.OVERWRITE if output_mode == "complete" else WriteMode.APPEND
    token = _token_at(config, checkpoint)
    with naming_commands(config, token):
        prepare(config, schema, mode, token)
    writer = (
        df.writeStream.format("laketier")
        .options(**as_options(config))
        .option("checkpointLocation", checkpoint)
        .outputMode(output_mode)
    )
    if trigger:
        writer = writer.trigger(**trigger)
    if query_name:
        writer = writer.queryName(query_name)
    if report is not None:
        writer = writer.option(REPORT_OPTION, str(report))
    with arrow_batches(df.sparkSession, schema), known_here(df.sparkSession):
        return writer.start()


def _token_at(config: LakeConfig, checkpoint: str) -> Token | None:
    """The newest epoch of the checkpoint, as far as this process can read it: none before it can come now."""
    found = Checkpoint.open(checkpoint)
    epoch = found.latest_epoch() if isinstance(found, Checkpoint) else None
    if not isinstance(found, Checkpoint) or epoch is None or config.pipeline is None:
        return None
    return Token(pipeline=config.pipeline, run=found.run, epoch=epoch)


def as_options(config: LakeConfig) -> dict[str, str]:
    """The configuration as options again. A secret among them is one in Spark's options too."""
    options = {"lake.format": config.format, "lake.warehouse": config.warehouse, "lake.table": str(config.table)}
    if config.pipeline is not None:
        options["lake.pipeline"] = config.pipeline
    if config.partition_by:
        options["lake.partition-by"] = ", ".join(map(str, config.partition_by))
    if config.bucket_by:
        bucket = config.bucket_by
        options["lake.bucket-by"] = f"{bucket.function}:bucket({bucket.count}, {', '.join(bucket.keys)})"
    if config.merge_schema:
        options["mergeSchema"] = "true"
    options |= {f"lake.{config.format}.{key}": value for key, value in config.format_options.items()}
    return options
