"""How people open a table without laketier."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from laketier.spi import TableInfo
from laketier_iceberg.connection import EMBEDDED_FILE, EMBEDDED_NAME


def open_with(table: TableInfo) -> Mapping[str, str]:
    """Tool → one line. For tables of the embedded catalog; for others the catalog's own way is named."""
    name = str(table.path)
    warehouse = Path(table.location).parent.parent
    database = warehouse / EMBEDDED_FILE
    if "://" in table.location or not database.exists():
        return {
            "pyiceberg": f'pyiceberg.catalog.load_catalog("<your catalog>").load_table("{name}").scan().to_arrow()',
            "Spark": f"SELECT * FROM <your catalog>.{name}",
        }
    load = f'load_catalog("{EMBEDDED_NAME}", type="sql", uri="sqlite:///{database}").load_table("{name}")'
    python = f"from pyiceberg.catalog import load_catalog; {load}"
    return {
        "pyiceberg": f"{python}.scan().to_arrow()",
        "Polars": f"import polars; {python.replace('; ', '; polars.scan_iceberg(', 1)}).collect()",
        "DuckDB": f"import duckdb; {python}.scan().to_duckdb('t').sql('SELECT count(*) FROM t')",
        "DuckDB (extension)": f"SELECT * FROM iceberg_scan('{_metadata(table)}')",
        "Spark": "spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,"
        "org.xerial:sqlite-jdbc:3.50.3.0 "
        f"--conf spark.sql.catalog.{EMBEDDED_NAME}=org.apache.iceberg.spark.SparkCatalog "
        f"--conf spark.sql.catalog.{EMBEDDED_NAME}.type=jdbc "
        f"--conf spark.sql.catalog.{EMBEDDED_NAME}.uri=jdbc:sqlite:{database} "
        f"--conf spark.sql.catalog.{EMBEDDED_NAME}.warehouse={warehouse} "
        f'-e "SELECT count(*) FROM {EMBEDDED_NAME}.{name}"',
    }


def _metadata(table: TableInfo) -> str:
    """The newest metadata file, as the catalog names it."""
    from laketier_iceberg.catalog import load
    from laketier_iceberg.connection import CatalogSettings

    warehouse = str(Path(table.location).parent.parent)
    return load(CatalogSettings(EMBEDDED_NAME, warehouse, True), table.path).metadata_location
