"""How people open a table without laketier."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from laketier.kit.looks import is_there
from laketier.spi import TableInfo
from laketier_iceberg.connection import EMBEDDED_FILE, EMBEDDED_NAME


def open_with(table: TableInfo) -> Mapping[str, str]:
    """Tool → one line. For tables of the embedded catalog; for others the catalog's own way is named."""
    name = str(table.path)
    warehouse = Path(table.location).parent.parent
    database = warehouse / EMBEDDED_FILE
    if not is_there(database):
        return {
            "pyiceberg": 'from pyiceberg.catalog import load_catalog; load_catalog("<your catalog>")'
            f'.load_table("{name}").scan().to_arrow()',
            "Spark": f'spark.table("<your catalog>.{name}")',
        }
    load = f'load_catalog("{EMBEDDED_NAME}", type="sql", uri="sqlite:///{database}").load_table("{name}")'
    python = f"from pyiceberg.catalog import load_catalog; {load}"
    return {
        "pyiceberg": f"{python}.scan().to_arrow()",
        "Polars": f"import polars; {python.replace('; ', '; polars.scan_iceberg(', 1)}).collect()",
        "DuckDB": f"import duckdb; {python}.scan().to_duckdb('t').table('t')",
        "Spark": f'spark.table("{EMBEDDED_NAME}.{name}")',
    }
