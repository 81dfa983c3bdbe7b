"""Iceberg with a local warehouse, and its catalog in a PostgreSQL server."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import ClassVar

import psycopg

from laketier.registry import hookimpl
from laketier_conformance.harness import Warehouse
from laketier_iceberg.plugin import IcebergPlugin
from laketier_verification.postgresql import PostgreSQL, running_postgresql


@cache
def server() -> PostgreSQL:
    """One for each process of pytest."""
    stack = ExitStack()
    made = stack.enter_context(running_postgresql())
    # Last registered, first called: its folder, too, is deleted at the end of the process.
    atexit.register(stack.close)
    return made


class Harness:
    def setup(self, folder: Path) -> Warehouse:
        uri = server().new_database().replace("postgresql://", "postgresql+psycopg://")
        return Warehouse(str(folder / "warehouse"), {"catalog.type": "sql", "catalog.uri": uri})

    def crash(self, _: Warehouse) -> None:
        server().stop()
        server().start()

    def for_readers(self, warehouse: Warehouse) -> dict[str, str]:
        """A role that may select."""
        uri = warehouse.options["catalog.uri"]
        with psycopg.connect(uri.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("CREATE ROLE reader LOGIN PASSWORD 'reader'")
            connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        made = f"{server().user}:{server().password}"
        return {**warehouse.options, "catalog.uri": uri.replace(made, "reader:reader")}


class IcebergOnPostgreSQL(IcebergPlugin):
    identifier: ClassVar[str] = "iceberg-on-postgresql"


@hookimpl
def laketier_format() -> IcebergOnPostgreSQL:
    return IcebergOnPostgreSQL()
