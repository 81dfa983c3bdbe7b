"""``spark.read.format("laketier")``: the splits of a snapshot as Spark's partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from laketier.config import LakeConfig
from laketier.spark.schema import for_spark, reading_schema
from laketier.spi import LakeSplit
from laketier.tables import Scan, open_source, plan_scan, scan_request


@dataclass
class SplitPartition(InputPartition):
    """A split as a Spark partition, with the scan that it is of: Spark pickles the reader before it is planned."""

    split: LakeSplit
    scan: Scan


class LakeReader(DataSourceReader):
    """Planned on the driver, read on executors. Spark tells a Python data source no columns, so it reads those of
    its schema: all of the table's, or the ones given with ``.schema(…)``.

    It takes no filters, on purpose: Spark (4.3.0) keeps the splits that one query's filters left, and gives them to the
    next query on the same DataFrame (docs/upstream). `laketier.spark.read` plans with filters.
    """

    def __init__(self, config: LakeConfig, schema: StructType) -> None:
        self._source = open_source(config)
        self._config = config
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Driver."""
        planned = plan_scan(self._source, scan_request(self._config, self._schema.fieldNames()))
        scan = planned.for_tasks()
        return [SplitPartition(split, scan) for split in planned.plan.splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Executor."""
        if not isinstance(partition, SplitPartition):
            return  # Spark makes up a partition where there is none
        wanted = reading_schema(self._schema)
        for batch in partition.scan.read(partition.split):
            yield for_spark(batch, wanted)
