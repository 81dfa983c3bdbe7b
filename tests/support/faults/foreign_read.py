"""Reading a table with an engine that is not laketier, in the same process: as often as a test wants to look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

NAMES = {"delta": "deltalake", "iceberg": "pyiceberg", "lance": "pylance", "localfile": "pyarrow.dataset"}


def foreign_catalog(warehouse: str) -> Any:
    """pyiceberg's own catalog over the embedded one's file. Close it when done."""
    from pyiceberg.catalog import load_catalog

    return load_catalog("laketier", type="sql", uri=f"sqlite:///{warehouse}/catalog.db?timeout=60", warehouse=warehouse)


class ForeignReader:
    """Opens the table anew at each `read`."""

    def __init__(self, format: str, warehouse: str, location: str) -> None:
        self._format = format
        self._location = location
        self._catalog = foreign_catalog(warehouse) if format == "iceberg" else None

    def read(self) -> pa.Table:
        return getattr(self, f"_{self._format}")()

    def close(self) -> None:
        if self._catalog is not None:
            self._catalog.close()

    def _delta(self) -> pa.Table:
        import deltalake

        return pa.table(deltalake.DeltaTable(self._location).to_pyarrow_table())

    def _iceberg(self) -> pa.Table:
        assert self._catalog is not None
        table: pa.Table = self._catalog.load_table("db.t").scan().to_arrow()
        return table

    def _lance(self) -> pa.Table:
        import lance

        return lance.dataset(self._location).to_table()

    def _localfile(self) -> pa.Table:
        import pyarrow.dataset as ds

        files = [
            str(p) for p in Path(self._location).rglob("*.parquet") if "__" not in str(p.relative_to(self._location))
        ]
        return ds.dataset(files, format="parquet", partitioning=None).to_table()
