"""Registers the laketier data source with Spark, which looks for packages of this name."""
