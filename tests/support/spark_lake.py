"""What the tests on Spark share: landing zones, and targets with their checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id long, name string, at timestamp"
_LANDED_AT = 1_750_000_000
BUILT_IN = ("delta", "iceberg", "lance", "localfile")


@dataclass
class Landing:
    """A folder where files of ``rows`` rows land, numbered through."""

    folder: Path
    rows: int = 10
    landed: int = field(default=0)

    def land(self, files: int = 1, *, name: str = "f") -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for _ in range(files):
            start = self.landed * self.rows
            ids = list(range(start, start + self.rows))
            table = pa.table(
                {
                    "id": pa.array(ids, pa.int64()),
                    "name": pa.array([None if i % 7 == 0 else f"näme {i}" for i in ids], pa.string()),
                    "at": pa.array([i * 1_000_000 for i in ids], pa.timestamp("us", "UTC")),
                }
            )
            hidden = self.folder / f".{name}{self.landed:04}.parquet"
            pq.write_table(table, hidden)
            # Spark takes files in the order of their times, which a fast machine makes equal.
            os.utime(hidden, times=(_LANDED_AT + self.landed,) * 2)
            hidden.rename(self.folder / f"{name}{self.landed:04}.parquet")
            self.landed += 1

    @property
    def ids(self) -> list[int]:
        return list(range(self.landed * self.rows))


@dataclass
class Target:
    """A table in a warehouse below ``folder``, and the checkpoint of the stream into it."""

    folder: Path
    format: str
    table: str = "db.events"

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def options(self, **more: Any) -> dict[str, str]:
        keys = {"lake.format": self.format, "lake.warehouse": str(self.warehouse), "lake.table": self.table}
        return keys | {f"lake.{key.replace('_', '-')}": str(value) for key, value in more.items()}

    def ids(self, spark: SparkSession) -> list[int]:
        df = spark.read.format("laketier").options(**self.options()).load()
        return sorted(row.id for row in df.select("id").collect())

    def data_files(self) -> list[Path]:
        return sorted(p for p in self.warehouse.rglob("*") if p.suffix in (".parquet", ".lance") and p.is_file())


def setting_seen_by_tasks(df: DataFrame, key: str) -> DataFrame:
    """One row per row of ``df``: what its task saw as the Spark setting ``key``."""

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        for batch in batches:
            value = TaskContext.get().getLocalProperty(key)
            yield pa.record_batch([pa.array([value] * batch.num_rows, pa.string())], names=["setting"])

    return df.mapInArrow(look, "setting string")
