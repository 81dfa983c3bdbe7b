"""A Fluss cluster as a source."""

from __future__ import annotations

from collections.abc import Sequence

from laketier.spi import LogSource, LogSourceConfig, TableLog, TableNotFound
from laketier_fluss.children import ask, close_idle
from laketier_fluss.connection import Connection
from laketier_fluss.log import FlussLog
from laketier_fluss.options import FlussTableOptions


class FlussSource(LogSource):
    """Its tables are ``database.table``."""

    def __init__(self, connection: Connection, databases: tuple[str, ...] = ()) -> None:
        self._connection = connection
        self._databases = databases

    @classmethod
    def create(cls, config: LogSourceConfig) -> FlussSource:
        """Raises `ConfigError`. Asks no server yet."""
        names = tuple(name.strip() for name in config.options.databases.split(",") if name.strip())
        return cls(Connection.of(config.options, config.name), names)

    def list_tables(self) -> Sequence[str]:
        """See `LogSource.list_tables`. Raises `TableNotFound` for a database that was named and is not there."""
        there = self._names({"op": "databases"})
        missing = sorted(set(self._databases) - set(there))
        if missing:
            raise TableNotFound(
                f"there is no database {', '.join(missing)}",
                where=self._connection.bootstrap_servers,
                fix=f"Correct databases. There are: {', '.join(sorted(there))}.",
            )
        databases = self._databases or there
        return sorted(
            f"{database}.{table}"
            for database in databases
            for table in self._names({"op": "tables", "database": database})
        )

    def open(self, name: str, options: FlussTableOptions) -> TableLog:
        """See `LogSource.open`. Raises `UnsupportedType` too."""
        if not all(name.partition(".")):
            raise TableNotFound(f"there is no table {name!r}", fix="Tables of Fluss are named database.table.")
        return FlussLog.open(self._connection, name, options)

    def close(self) -> None:
        """See `LogSource.close`."""
        close_idle(self._connection)

    def _names(self, request: dict[str, str]) -> list[str]:
        header, _ = ask(self._connection, request)
        names: list[str] = header["names"]
        return names
