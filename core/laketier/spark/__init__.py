"""The engine: the Spark data source, the lanes, and reading."""
