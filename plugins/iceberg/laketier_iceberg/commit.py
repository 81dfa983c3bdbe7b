"""The one way to change a table: a commit of the catalog, against the very table that was loaded. Driver."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pyiceberg.table import Table
from pyiceberg.table.update import AssertTableUUID, TableRequirement, TableUpdate

from laketier_iceberg.removal import delete_old_metadata

log = logging.getLogger(__name__)


def commit(table: Table, updates: Iterable[TableUpdate], *requirements: TableRequirement) -> None:
    """Commit ``updates`` once, if ``requirements`` hold and the table is the same one. Then delete metadata files that
    are too old, if the table's properties say so. Raises what the catalog raises."""
    same = AssertTableUUID(uuid=table.metadata.table_uuid)
    landed = table.catalog.commit_table(table, (same, *requirements), tuple(updates))
    try:
        delete_old_metadata(table.io, table.metadata, landed.metadata)
    except Exception as error:  # noqa: BLE001 - it landed: nothing that fails now may make that unknown
        log.warning("old metadata files could not be deleted, orphan collection will find them: %s", error)
