"""The logs of the tables that a service file configures: its sources are opened, asked for their tables, and closed."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from pathlib import Path

from laketier.config import flatten
from laketier.config.service import Service, load_service
from laketier.registry import OpenSource, open_log_source
from laketier.rounds.checked_log import CheckedLog
from laketier.rounds.configured import ConfiguredTable, configured_tables
from laketier.rounds.keyed import KeyedLog
from laketier.spi import ConfigError, LogTable, TableLog


def open_sources(service: Service, *, origin: str) -> dict[str, OpenSource]:
    """Open all sources of a service. Returns them by name. Raises `PluginError`, `ConfigError` and `StorageError`."""
    opened: dict[str, OpenSource] = {}
    try:
        for name, section in service.sources.items():
            options, where = flatten(section.options), f"{origin}, sources.{name}"
            opened[name] = open_log_source(section.type, options, name=name, origin=where)
    except BaseException:  # nobody gets those that were opened, which may be processes
        _close(opened)
        raise
    return opened


def _close(sources: Mapping[str, OpenSource]) -> None:
    for each in sources.values():
        each.close()


def open_log(table: ConfiguredTable, sources: Mapping[str, OpenSource]) -> TableLog:
    """The log of a table of the service, with the key that the service's file gives it. Raises `ConfigError` for one
    that it can't have, `PluginBroken`, and what the source raises."""
    log = CheckedLog.of(sources[table.source].open(table.name, table.read), table.name)
    if table.primary_key is None and table.change_column is None:
        return log
    return KeyedLog.of(log, table.primary_key, table.change_column)


def look_again(table: ConfiguredTable, sources: Mapping[str, OpenSource]) -> LogTable:
    """Ask the source for the table as it is now. Raises as `open_log`."""
    opened = open_log(table, sources)
    try:
        return opened.table
    finally:
        opened.close()


def close_when_unused(log: TableLog, newer: TableLog) -> None:
    """Close a log of `open_log` once nobody has it any more. Until then a round may read it, in another thread.
    Where the source gave the same object again, as ``newer``, it stays open."""
    checked = _checked(log)
    if checked.log is not _checked(newer).log:
        weakref.finalize(checked, CheckedLog(checked.log, checked.described).close).atexit = False


def _checked(log: TableLog) -> CheckedLog:
    found = log.log if isinstance(log, KeyedLog) else log
    assert isinstance(found, CheckedLog)
    return found


def list_configured_tables(file: str | Path) -> list[ConfiguredTable]:
    """The tables of a service file, by name. Asks the sources, and opens no log. Driver.

    Raises `ConfigError`, `PluginError`, and what a source raises.
    """
    origin = str(file)
    service = load_service(file)
    sources = open_sources(service, origin=origin)
    try:
        listed = {name: opened.list_tables() for name, opened in sources.items()}
    finally:
        _close(sources)
    return sorted(configured_tables(service, listed, origin=origin, refused={}), key=lambda table: table.key)


def open_configured_table(file: str | Path, name: str) -> tuple[ConfiguredTable, TableLog]:
    """As `open_with_source`, without the source."""
    table, log, _ = open_with_source(file, name)
    return table, log


def open_with_source(file: str | Path, name: str) -> tuple[ConfiguredTable, TableLog, Mapping[str, OpenSource]]:
    """A table of a service file, its log, and its source for `look_again`. ``name``: ``source.table``, or the lake
    table's name. Driver.

    Raises `ConfigError`, also when the service has no such table, and what its source raises.
    """
    origin = str(file)
    service = load_service(file)
    # Others than the one that is named need not answer.
    named = {source: section for source, section in service.sources.items() if name.startswith(f"{source}.")}
    known = ""
    for chosen in (named, service.sources):
        sources = open_sources(service.model_copy(update={"sources": chosen}), origin=origin)
        try:
            tables = _listed_tables(service, sources, name, origin)
            found = [table for table in tables if name in (table.key, str(table.config.table))]
            if len(found) == 1:
                log = open_log(found[0], sources)
                mine = {found[0].source: sources.pop(found[0].source)}  # the log is read from it
                return found[0], log, mine
        finally:
            _close(sources)
        if len(found) > 1:
            raise ConfigError(
                f"{name!r} is the lake table of {found[0].key} and of {found[1].key}",
                where=origin,
                fix="Name the source's table.",
            )
        known = ", ".join(sorted(table.key for table in tables)[:10])
    raise ConfigError(f"the service has no table {name!r}", where=origin, fix=f"It has: {known or 'none'}.")


def _listed_tables(
    service: Service, sources: Mapping[str, OpenSource], name: str, origin: str
) -> list[ConfiguredTable]:
    """Those of the sources. Raises the error of the one that is named, where it is refused."""
    listed = {source: opened.list_tables() for source, opened in sources.items()}
    refused: dict[str, tuple[ConfiguredTable, ConfigError]] = {}
    tables = configured_tables(service, listed, origin=origin, refused=refused)
    if name in refused:
        raise refused[name][1]
    return tables
