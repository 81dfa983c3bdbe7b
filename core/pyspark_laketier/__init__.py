"""Registers the laketier data source with Spark, which imports packages of this name when a session first looks one
up: ``df.write.format("laketier")`` needs no call."""

from laketier.spark.data_source import LakeDataSource as DefaultSource

__all__ = ["DefaultSource"]
