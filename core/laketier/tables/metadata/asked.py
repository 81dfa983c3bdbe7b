"""What a plugin is asked of a table beside the table itself. The answers are hints: whoever loads the table says what
is wrong with it, so nothing is raised here."""

from __future__ import annotations

import logging
from dataclasses import replace

from laketier.registry import Lake
from laketier.spi import TableInfo, TablePath

log = logging.getLogger(__name__)


def lake_of_table(lake: Lake, path: TablePath) -> Lake:
    """The same warehouse, with another of its tables as the configured one."""
    return replace(lake, config=replace(lake.config, table=path))


def version_of(lake: Lake, known: str | None) -> str | None:
    """The version of the configured table. None where the plugin can't tell it, or fails to."""
    try:
        return lake.storage.catalog().table_version(lake.config.table, known)
    except Exception as error:  # noqa: BLE001 - whatever a plugin may raise
        log.debug("the version of %s could not be told: %r", lake.config.table, error)
        return None


def handle_bytes_of(lake: Lake, table: TableInfo) -> int | None:
    """What the handle of ``table`` takes. None where the plugin can't tell it, or fails to."""
    try:
        return lake.storage.catalog().handle_bytes(table)
    except Exception as error:  # noqa: BLE001 - whatever a plugin may raise
        log.debug("the size of the handle of %s could not be told: %r", table.path, error)
        return None
