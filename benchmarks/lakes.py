"""Tables of each format, empty and ready, as the comparisons need them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laketier.registry import configure, format_names, open_lake

FORMATS = ("localfile", "delta", "iceberg", "lance")
TABLE = "bench.orders"


def installed(wanted: list[str] | None) -> list[str]:
    """The formats to measure: those asked for, or those of this workspace that are installed."""
    names = format_names()
    return wanted or [name for name in FORMATS if name in names]


def options(format_name: str, folder: Path, **more: Any) -> dict[str, Any]:
    """The ``lake.*`` keys of a table in ``folder``."""
    keys = {"lake.format": format_name, "lake.warehouse": str(folder / "warehouse"), "lake.table": TABLE}
    return keys | {f"lake.{key.replace('_', '-')}": value for key, value in more.items()}


def rows_in(format_name: str, folder: Path, column: str = "id") -> int:
    """How many rows the table holds, counted by reading it."""
    from laketier.spi import ScanRequest

    lake = open_lake(configure(options(format_name, folder)))
    source = lake.storage.source(lake.storage.catalog().load_table(lake.config.table))
    plan = source.plan(ScanRequest(columns=(column,)))
    return sum(batch.num_rows for split in plan.splits for batch in source.read(split, plan.schema))


def expect_rows(format_name: str, folder: Path, rows: int) -> None:
    """Raises unless the table holds ``rows`` rows."""
    found = rows_in(format_name, folder)
    if found != rows:
        raise AssertionError(f"{format_name}: {found} rows were written instead of {rows}")
