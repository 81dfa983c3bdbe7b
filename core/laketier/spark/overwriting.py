"""An overwrite replaces all rows, and a session of Spark may ask for less. Driver and executors.

A stream in complete mode asks for no less, whatever the session is set to: its result is the whole table."""

from __future__ import annotations

from pyspark.sql import SparkSession

from laketier.spi import ConfigError, TableInfo, WriteMode

OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def refuse_dynamic(told: str | None, mode: WriteMode, table: str, *, partitioned: bool) -> None:
    """Raise `ConfigError` for an overwrite of a table with partitions in a session whose `OVERWRITE_MODE` is
    ``told``, if that keeps the partitions without new rows: other formats of Spark's do so then, and here their rows
    would be gone. Without partitions both modes mean the same."""
    if mode is WriteMode.OVERWRITE and partitioned and (told or "").lower() == "dynamic":
        raise ConfigError(
            "the session asks that an overwrite keeps the partitions to which it writes no rows",
            where=table,
            why=f"{OVERWRITE_MODE} is dynamic, and an overwrite of laketier replaces all rows of a table",
            fix=f'To replace all rows, spark.conf.set("{OVERWRITE_MODE}", "static"). No row was changed.',
        )


def refuse_dynamic_session(spark: SparkSession, mode: WriteMode, table: str, *, partitioned: bool) -> None:
    """The same with the setting of ``spark``. Driver, where the session is at hand."""
    refuse_dynamic(spark.conf.get(OVERWRITE_MODE), mode, table, partitioned=partitioned)


def is_partitioned(table: TableInfo) -> bool:
    """Whether the table has partitions."""
    return bool(table.descriptor.partition_by)
