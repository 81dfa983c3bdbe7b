"""The two lanes through Spark: the same round, its rows coming from a folder of Parquet files."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from laketier_conformance.lake import Lake, batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "db.spark"
DATAFRAME, SPLIT = "spark-dataframe", "spark-split"
ZONE = "America/St_Johns"
"""Of the session: moments reach a writer in it. In UTC nobody could tell a moment from what clocks show."""


def start_session() -> SparkSession:
    """A local Spark with two cores. Raises `ConfigError` where Spark or Java is missing."""
    from laketier.spark import builder
    from laketier_conformance import spark_daemon

    making = builder(app_name="laketier conformance", master="local[2]").config(map=spark_daemon.settings())
    making = making.config("spark.sql.session.timeZone", ZONE)
    session = making.config("spark.sql.shuffle.partitions", 2).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def options(lake: Lake, epoch: int | None, pipeline: str = "p") -> dict[str, str]:
    """The ``lake.*`` keys of a write. Without an epoch those of a stream."""
    keys = {"lake.format": lake.format, "lake.warehouse": lake.location, "lake.table": TABLE, "lake.pipeline": pipeline}
    if epoch is not None:
        keys["lake.epoch"] = str(epoch)
    return keys | {f"lake.{lake.format}.{key}": value for key, value in lake.options.items()}


def land(folder: Path, parts: Sequence[Sequence[int]], name: str = "part") -> None:
    """Write the rows of some ids as Parquet files, one per part. Again the same is fine."""
    land_batches(folder, list(map(batch, parts)), name)


def land_batches(folder: Path, parts: Sequence[pa.RecordBatch], name: str = "part") -> None:
    """Write Parquet files, one per batch."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(parts):
        hidden = folder / f".{name}-{number}.parquet"
        # Spark takes every column of a file for nullable; so does the table that a lane creates.
        nullable = pa.schema([field.with_nullable(True) for field in rows.schema])
        pq.write_table(pa.Table.from_batches([rows]).cast(nullable), hidden)
        hidden.rename(folder / f"{name}-{number}.parquet")


def run_round(
    session: SparkSession, lane: str, lake: Lake, epoch: int, folder: Path, mode: str = "append", **more: str
) -> None:
    """One round of what lies in ``folder``. ``more``: further keys, without ``lake.``, with ``_`` for ``-``."""
    keys = options(lake, epoch) | {f"lake.{key.replace('_', '-')}": value for key, value in more.items()}
    if lane == DATAFRAME:
        from pyspark.errors import PySparkException

        from laketier.spark.failures import cause_of

        rows = session.read.parquet(str(folder))
        try:
            rows.write.format("laketier").options(**keys).mode(mode).save()
        except PySparkException as error:
            # A refusal of the format is one in each lane.
            if (cause := cause_of(error)) is None:
                raise
            raise cause from error
    else:
        from laketier.connectors import ParquetFolder
        from laketier.spark import tier

        tier(session, ParquetFolder(str(folder)), keys, mode=mode)


def main() -> None:
    """``python -m laketier_conformance.spark_lanes REQUEST``: a driver of its own, to be killed by a failpoint. In the
    DataFrame lane it publishes in its own process, as the data source would in a helper of Spark's."""
    request: dict[str, Any] = json.loads(sys.argv[1])
    lake = Lake(request["format"], request["warehouse"], request["options"])
    session = start_session()
    if request["lane"] == DATAFRAME:
        from laketier.spark import write

        write(session.read.parquet(request["folder"]), options(lake, request["epoch"]))
    else:
        run_round(session, SPLIT, lake, request["epoch"], Path(request["folder"]))


if __name__ == "__main__":
    main()
