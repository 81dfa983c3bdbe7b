"""Tables that laketier and the JVM's own connectors share: iceberg-spark and delta-spark, in one Spark session."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from laketier.config import LakeConfig
from laketier.registry import configure, open_lake

WANTED = ("delta-spark", "delta-storage", "iceberg-spark-runtime", "sqlite-jdbc", "unitycatalog-client")
EXTENSIONS = (
    "io.delta.sql.DeltaSparkSessionExtension",
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
)
_numbers = itertools.count()


def jars_of(folder: Path) -> list[str]:
    """Those of the connectors, and no second Hadoop or Scala. Raises `FileNotFoundError`."""
    found = sorted(str(path) for path in folder.glob("*.jar") if path.name.startswith(WANTED))
    missing = [name for name in WANTED[:4] if not any(Path(path).name.startswith(name) for path in found)]
    if missing:
        raise FileNotFoundError(f"{folder} holds no jar of {', '.join(missing)}: make test-interop-jvm")
    return found


class JvmLake(ABC):
    """One table of a warehouse. Iceberg's embedded catalog has one name, so a session has one warehouse."""

    format: ClassVar[str]
    sql: str
    """The table's name in SQL."""

    def __init__(self, spark: SparkSession, warehouse: Path) -> None:
        self.spark = spark
        self.warehouse = warehouse
        self.name = f"t{next(_numbers)}"

    @staticmethod
    def of(format: str, spark: SparkSession, warehouse: Path) -> JvmLake:
        return {kind.format: kind for kind in (JvmDelta, JvmIceberg)}[format](spark, warehouse)

    def keys(self, **more: Any) -> dict[str, Any]:
        keys = {"lake.format": self.format, "lake.warehouse": str(self.warehouse), "lake.table": f"db.{self.name}"}
        return keys | {f"lake.{name.replace('_', '-')}": str(value) for name, value in more.items()}

    def config(self, **more: Any) -> LakeConfig:
        return configure(self.keys(**more), environment={})

    def theirs(self, statement: str) -> DataFrame:
        """A statement in which ``{t}`` is the table."""
        return self.spark.sql(statement.replace("{t}", self.sql))

    @property
    @abstractmethod
    def rows(self) -> DataFrame:
        """The table as the connector reads it, now."""

    @abstractmethod
    def create(self, columns: str, partitioned: str = "", **properties: str) -> None:
        """By the connector."""

    @abstractmethod
    def by_library(self) -> pa.Table:
        """As the format's Python library reads it."""


class JvmDelta(JvmLake):
    """By path."""

    format = "delta"

    @property
    def path(self) -> Path:
        return self.warehouse / "db" / self.name

    @property
    def sql(self) -> str:  # type: ignore[override]
        return f"delta.`{self.path}`"

    @property
    def rows(self) -> DataFrame:
        return self.spark.read.format("delta").load(str(self.path))

    def create(self, columns: str, partitioned: str = "", **properties: str) -> None:
        by = f"PARTITIONED BY ({partitioned})" if partitioned else ""
        told = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self.theirs(f"CREATE TABLE {{t}} ({columns}) USING delta {by} {f'TBLPROPERTIES ({told})' if told else ''}")

    def by_library(self) -> pa.Table:
        from deltalake import DeltaTable, QueryBuilder

        # Not to_pyarrow_table: that knows no deletion vectors.
        builder = QueryBuilder().register("t", DeltaTable(str(self.path)))
        return pa.table(builder.execute("select * from t").read_all())


class JvmIceberg(JvmLake):
    """By a JDBC catalog over the very SQLite file that pyiceberg's catalog is."""

    format = "iceberg"

    @property
    def sql(self) -> str:  # type: ignore[override]
        return f"laketier.db.{self.name}"

    @property
    def rows(self) -> DataFrame:
        return self.spark.table(self.sql)

    def create(self, columns: str, partitioned: str = "", **properties: str) -> None:
        by = f"PARTITIONED BY ({partitioned})" if partitioned else ""
        told = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self.theirs("CREATE NAMESPACE IF NOT EXISTS laketier.db")
        self.theirs(f"CREATE TABLE {{t}} ({columns}) USING iceberg {by} {f'TBLPROPERTIES ({told})' if told else ''}")

    def by_library(self) -> pa.Table:
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog("laketier", uri=f"sqlite:///{self.warehouse}/catalog.db", warehouse=str(self.warehouse))
        return catalog.load_table(f"db.{self.name}").scan().to_arrow()


def session(jars: list[str], zone: str, folder: Path, warehouse: Path) -> Iterator[SparkSession]:
    """Ours, with the connectors in it, for ``warehouse``. The JVM's zone and the session's are ``zone``."""
    # pyiceberg makes the catalog's tables as it wants them, before the JVM looks.
    first = configure(
        {"lake.format": "iceberg", "lake.warehouse": str(warehouse), "lake.table": "db.t"}, environment={}
    )
    open_lake(first).storage.catalog().list_tables("db")
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("laketier interop")
        .config("spark.jars", ",".join(jars))
        .config("spark.sql.extensions", ",".join(EXTENSIONS))
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.catalog.laketier", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.laketier.type", "jdbc")
        .config("spark.sql.catalog.laketier.uri", f"jdbc:sqlite:{warehouse}/catalog.db")
        .config("spark.sql.catalog.laketier.warehouse", str(warehouse))
        .config("spark.sql.catalog.laketier.jdbc.schema-version", "V1")
        .config("spark.sql.catalog.laketier.cache-enabled", False)
        .config("spark.databricks.delta.retentionDurationCheck.enabled", False)
        .config("spark.databricks.delta.snapshotPartitions", 2)
        .config("spark.databricks.delta.vacuum.parallelDelete.enabled", False)
        # Else VACUUM lists a folder in 10,000 tasks.
        .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", 2)
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.session.timeZone", zone)
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder} -Duser.timezone={zone}")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    yield spark
    spark.stop()
