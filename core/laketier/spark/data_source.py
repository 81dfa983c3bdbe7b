"""``spark.read.format("laketier")``, ``df.write.format("laketier")`` and ``df.writeStream.format("laketier")``.

Spark makes the data source again, from the options alone, in each of its Python processes on the driver; what is
planned in one of them reaches the others and the tasks by pickle.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from laketier.config import LakeConfig
from laketier.registry import configure_spark
from laketier.spark.batch_writer import LakeBatchWriter
from laketier.spark.scan import LakeReader
from laketier.spark.schema import spark_schema
from laketier.spark.stream_writer import LakeStreamWriter
from laketier.spark.union_read import UNION, UnionOptions, UnionReader
from laketier.spi import ConfigError
from laketier.tables import open_source, scan_request

_CHECKPOINT = "checkpointlocation"


class LakeDataSource(DataSource):
    """Registered as ``laketier`` by the package ``pyspark_laketier``, which Spark finds by its name."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        """Spark does this first, for reads and writes alike, before any job: so all keys are checked here. Raises
        `ConfigError`."""
        super().__init__(options)
        self._union = UnionOptions.of(options)
        if self._union is not None:
            return
        self._config = read_options({key: value for key, value in options.items() if key.lower() != UNION})
        self._checkpoint = options.get(_CHECKPOINT)
        self._report = options.get(REPORT_OPTION)
        if self._checkpoint is not None:
            require_stream_keys(self._config)

    @classmethod
    def name(cls) -> str:
        return "laketier"

    def schema(self) -> StructType:
        if self._union is not None:
            return spark_schema(self._union.plan().schema)
        return spark_schema(open_source(self._config).plan(scan_request(self._config)).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        if self._union is not None:
            return UnionReader(self._union, schema)
        return LakeReader(self._config, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        self._refuse_union()
        return LakeBatchWriter(self._config, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        self._refuse_union()
        require_stream_keys(self._config)
        return LakeStreamWriter(
            self._config, schema, overwrite=overwrite, checkpoint=self._checkpoint, report=self._report
        )

    def _refuse_union(self) -> None:
        if self._union is not None:
            raise ConfigError("`union` is for reading", where="the options", fix="Remove it from the write.")


REPORT_OPTION = "spark.laketier.report"
"""Where the commits of a stream leave their figures for `laketier.spark.progress`; set by `laketier.spark.stream`."""


def read_options(options: Mapping[str, str]) -> LakeConfig:
    """Type the options. Raises `ConfigError`, with the reason where Spark itself dropped them."""
    if not any(key.lower().startswith("lake.") for key in options) and "path" not in options:
        try:
            return configure_spark(options)
        except ConfigError as error:
            raise ConfigError(
                "no lake.* option arrived",
                where=error.where,
                why="none was given, or this is a table made by CREATE TABLE … USING laketier: Spark keeps its options "
                "to itself",
                fix="In SQL use CREATE TEMPORARY VIEW v USING laketier OPTIONS (…) for reading and writing, or INSERT "
                "INTO t WITH ('lake.format' = …, 'lake.warehouse' = …, 'lake.table' = …); in Python use "
                'df.write.format("laketier") with .option(…).',
            ) from error
    return configure_spark(options)


def require_stream_keys(config: LakeConfig) -> None:
    """Raises `ConfigError` unless the keys suit a stream."""
    if config.pipeline is None:
        raise ConfigError(
            "a stream needs lake.pipeline",
            where=config.origin,
            why="the table remembers under this name which epochs it holds",
            fix=f'Add .option("lake.pipeline", "<a stable name, one per query>"), for example {config.table.table}-v1.',
        )
    if config.epoch is not None:
        raise ConfigError(
            "lake.epoch is for batches", where=config.origin, fix="Remove it: a stream's batch id is its epoch."
        )
