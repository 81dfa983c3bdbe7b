"""The tables of a running service, discovered regularly, with their logs kept open."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from laketier.config.service import Service
from laketier.kit.library_errors import as_told
from laketier.registry import OpenSource
from laketier.rounds.configured import ConfiguredTable, configured_tables
from laketier.rounds.configured_logs import close_when_unused, look_again, open_log, open_sources
from laketier.service.listing import Listed, list_all
from laketier.service.state import Registration, StateError, StateStore
from laketier.spi import ConfigError, LaketierError, LogTable, StorageError, TableLog
from laketier.spi.redaction import redacted

log = logging.getLogger(__name__)

_THREADS = 8


class ServiceTables:
    """Lists the sources' tables, registers them, and opens their logs. Driver. Safe in threads after the first
    `discover`. A source that does not answer leaves its tables, and those of the others, as they are."""

    def __init__(
        self, service: Service, store: StateStore, *, origin: str, sources: dict[str, OpenSource] | None = None
    ) -> None:
        """Open the sources of a service.

        Args:
            service: The service file.
            store: The state database.
            origin: The name of the service file, for messages.
            sources: The sources, where they are open already. `close` closes them.
        """
        self._service = service
        self._store = store
        self._origin = origin
        self._sources: dict[str, OpenSource] = sources or open_sources(service, origin=origin)
        self._tables: Mapping[str, ConfiguredTable] = {}
        self._logs: dict[str, TableLog] = {}
        self._unopened: dict[str, LaketierError] = {}
        self._listed: dict[str, list[str]] = {}
        self._due = 0.0
        self._lock = threading.Lock()

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next `discover`."""
        return time.monotonic() >= self._due

    def expire(self) -> None:
        """Make `discover` due: the known tables may be wrong."""
        self._due = 0.0

    def discover(self, listed: Listed | None = None) -> None:
        """List the tables of all sources, open their logs, and register them. One thread at a time.

        Args:
            listed: The tables of the sources, where they were listed a moment ago. None asks the sources.

        Raises:
            StateError: The state database does not answer.
            ConfigError: Two source tables would go to one lake table.
        """
        self._due = time.monotonic() + self._service.discover_every
        unlisted = set()
        for name, names in (list_all(self._sources) if listed is None else listed).items():
            if isinstance(names, LaketierError):
                unlisted.add(name)
                if listed is None:  # else who listed them has said so
                    log.warning("[source=%s] the tables could not be listed: %s", name, names)
            else:
                self._listed[name] = names
        refused: dict[str, tuple[ConfiguredTable, ConfigError]] = {}
        chosen = configured_tables(self._service, self._listed, origin=self._origin, refused=refused)
        tables = {table.key: table for table in chosen}
        every = {**tables, **{key: table for key, (table, _) in refused.items()}}
        with ThreadPoolExecutor(_THREADS) as pool:
            opened = dict(zip(every, pool.map(self._try_open, every.values()), strict=True))
        for key, found in opened.items():
            if isinstance(found, LaketierError):
                # The registration of one that is known stays as it is: its round says that it can't be opened.
                unlisted.add(every[key].source)
                log.warning("[table=%s] the log could not be opened: %s", key, found)
        logs = {key: found for key, found in opened.items() if not isinstance(found, LaketierError)}
        with self._lock:
            older = self._logs
            self._tables, self._logs = tables, {**older, **logs}
            self._unopened = {key: found for key, found in opened.items() if isinstance(found, LaketierError)}
            unopened = dict(self._unopened)
        for key in older.keys() & logs.keys():
            close_when_unused(older[key], logs[key])
        del older  # what no round reads is closed here, and not below the lock
        try:
            why = {key: str(error) for key, (_, error) in refused.items()}
            registrations = [_registration(every[key], each.table.table_id, why.get(key)) for key, each in logs.items()]
            registrations += [
                _registration(every[key], "", redacted(f"the log can't be opened: {error}"))
                for key, error in unopened.items()
            ]
            self._store.register(registrations, unlisted=unlisted)
        except StateError:
            self.expire()
            raise

    def opened(self) -> tuple[int, Mapping[str, LaketierError]]:
        """The number of open logs, and the errors of those that could not be opened."""
        with self._lock:
            return len(self._logs), dict(self._unopened)

    def known(self, key: str) -> ConfiguredTable | None:
        """The table with the name ``source.table``; None where this worker does not know it."""
        with self._lock:
            return self._tables.get(key)

    def table(self, key: str) -> ConfiguredTable:
        """The same table, for who needs it.

        Raises:
            StorageError: This worker does not know it. The sources are then listed again: a broker that has just begun
                lists a part of its topics, and another worker may have seen a table first.
        """
        found = self.known(key)
        if found is None:
            self.expire()
            raise StorageError(
                f"the table {key!r} was not there when the sources were listed last",
                where=self._origin,
                why="its source listed only some of its tables, or another worker has listed them since, or the "
                "service's file no longer names it",
                fix="Nothing, if it is there: the sources are being listed again.",
            )
        return found

    def indexed(self) -> frozenset[str]:
        """The names of the tables that have indexes to keep."""
        with self._lock:
            return frozenset(key for key, table in self._tables.items() if table.indexes or table.table_indexes)

    def log(self, table: ConfiguredTable) -> TableLog:
        """The log of a table. Raises the error with which it could not be opened."""
        with self._lock:
            found, error = self._logs.get(table.key), self._unopened.get(table.key)
        if found is None:
            raise error or StorageError("the log was not opened yet", where=table.key, fix="See the service's log.")
        return found

    def look_again(self, table: ConfiguredTable) -> LogTable:
        """Ask the source for the table as it is now. Raises `TableNotFound`, `StorageError` and `ConfigError`."""
        return look_again(table, self._sources)

    def _try_open(self, table: ConfiguredTable) -> TableLog | LaketierError:
        try:
            return open_log(table, self._sources)
        except BaseException as error:  # noqa: BLE001 - whatever a client library may raise is this table's trouble alone
            return as_told(error, "the log could not be opened", where=table.key)

    def close(self) -> None:
        """Close the logs and the sources."""
        for each in self._logs.values():
            each.close()
        for source in self._sources.values():
            source.close()


def _registration(table: ConfiguredTable, table_id: str, refusal: str | None) -> Registration:
    return Registration(
        source=table.source,
        table=table.name,
        table_id=table_id,
        format=table.config.format,
        target=str(table.config.table),
        pipeline=table.pipeline,
        warehouse=table.warehouse,
        freshness_seconds=table.freshness_seconds,
        priority=table.priority,
        refusal=refusal,
    )
