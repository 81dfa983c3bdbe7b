"""Options that the commands share, and what they say about them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from laketier.config import flatten, from_environment, read_yaml
from laketier.plugins import Lake, configure, open_lake
from laketier.spi import ConfigError, TableInfo

_PLAIN_WIDTH = 160
"""Where nobody sees a window's edge, in characters."""

Table = Annotated[str | None, typer.Argument(help="The table, as database.table.", show_default=False)]
File = Annotated[Path | None, typer.Option("--config", "-c", help="A YAML file with `lake:` keys.", show_default=False)]
Format = Annotated[str | None, typer.Option("--format", "-f", help="lake.format", show_default=False)]
Warehouse = Annotated[str | None, typer.Option("--warehouse", "-w", help="lake.warehouse", show_default=False)]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="Any other key: KEY=VALUE. May be repeated.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def console() -> Console:
    """Where results go: standard output, in colour on a terminal, as plain lines elsewhere, wide enough for tables."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=_PLAIN_WIDTH)


def settings(table: str | None, format: str | None, warehouse: str | None, sets: list[str] | None) -> dict[str, Any]:
    """The ``lake.*`` keys that a call gives beside its file."""
    values: dict[str, Any] = {}
    for item in sets or []:
        key, equals, value = item.partition("=")
        if not equals:
            raise ConfigError(f"--set {item!r} is not KEY=VALUE", fix="For example --set lake.snapshot-id=12.")
        values[key.strip()] = value
    named = {"lake.table": table, "lake.format": format, "lake.warehouse": warehouse}
    return values | {key: value for key, value in named.items() if value is not None}


def opened(
    table: str | None, file: Path | None, format: str | None, warehouse: str | None, sets: list[str] | None
) -> tuple[Lake, TableInfo]:
    """The lake and the table that a call names. Raises `ConfigError`, `PluginError` and `TableNotFound`."""
    config = configure(settings(table, format, warehouse, sets), file=file, origin="the command line")
    lake = open_lake(config)
    return lake, lake.storage.catalog().load_table(config.table)


def opened_lake(file: Path | None, format: str | None, warehouse: str | None, sets: list[str] | None) -> Lake:
    """The lake that a call names, whatever table."""
    values = settings(None, format, warehouse, sets)
    required = ("lake.format", "lake.warehouse")
    return open_lake(configure(values, file=file, origin="the command line", require=required))


def names_table(file: Path | None, sets: list[str] | None) -> bool:
    """Whether a call names a table otherwise than by its argument."""
    values = {**(flatten(read_yaml(file)) if file else {}), **from_environment(), **settings(None, None, None, sets)}
    return any(key.lower() == "lake.table" for key in values)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(document, indent=2, default=str, ensure_ascii=False))
