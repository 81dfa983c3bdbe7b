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
    """Opens the table anew at each `read`. ``since``: only epochs from there on are wanted; more may come."""

    def __init__(self, format: str, warehouse: str, location: str) -> None:
        self._format = format
        self._location = location
        self._catalog = foreign_catalog(warehouse) if format == "iceberg" else None

    def read(self, since: int | None = None) -> pa.Table:
        table: pa.Table = getattr(self, f"_{self._format}")(since)
        return table

    def close(self) -> None:
        if self._catalog is not None:
            self._catalog.close()

    def _delta(self, since: int | None) -> pa.Table:
        import deltalake

        filters = None if since is None else [("epoch", ">=", since)]
        return pa.table(deltalake.DeltaTable(self._location).to_pyarrow_table(filters=filters))

    def _iceberg(self, since: int | None) -> pa.Table:
        assert self._catalog is not None
        filters = {} if since is None else {"row_filter": f"epoch >= {since}"}
        return self._catalog.load_table("db.t").scan(**filters).to_arrow()

    def _lance(self, since: int | None) -> pa.Table:
        import lance

        return lance.dataset(self._location).to_table(filter=None if since is None else f"epoch >= {since}")

    def _localfile(self, since: int | None) -> pa.Table:
        import pyarrow.dataset as ds

        root = Path(self._location)
        files = [p for p in root.rglob("*.parquet") if not any(x.startswith("_") for x in p.relative_to(root).parts)]
        condition = None if since is None else ds.field("epoch") >= since
        return ds.dataset([str(path) for path in files], format="parquet").to_table(filter=condition)
