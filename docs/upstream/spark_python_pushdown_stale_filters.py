"""Two queries on one DataFrame share the filters that the first one pushed. Nothing but pyspark:

pip install "pyspark>=4.1" pyarrow "pandas<3"
python spark_python_pushdown_stale_filters.py
"""

# ruff: noqa: T201 - it prints its result

import os
import sys

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, GreaterThan, InputPartition


class Ten(DataSource):
    """The numbers 0 to 9."""

    @classmethod
    def name(cls):
        return "ten"

    def schema(self):
        return "a long"

    def reader(self, schema):
        return TenReader()


class TenReader(DataSourceReader):
    """Takes one kind of filter, ``a > n``, and applies it."""

    def __init__(self):
        self.above = -1

    def pushFilters(self, filters):  # noqa: N802
        for pushed in filters:
            if isinstance(pushed, GreaterThan):
                self.above = pushed.value
            else:
                yield pushed

    def partitions(self):
        return [InputPartition(0)]

    def read(self, partition):
        return iter([(a,) for a in range(10) if a > self.above])


spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
spark.dataSource.register(Ten)
numbers = spark.read.format("ten").load()
print("a > 5:        ", [row.a for row in numbers.where("a > 5").collect()], "expected [6, 7, 8, 9]")
print("all:          ", [row.a for row in numbers.collect()], "expected 0 to 9")
print("a = 3 or a = 4:", [row.a for row in numbers.where("a = 3 or a = 4").collect()], "expected [3, 4]")
