"""The one way to change a table: a commit of the catalog, against the very table that was loaded. Driver."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import CommitFailedException, RESTError
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    AssertTableUUID,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.table.update.schema import UpdateSchema

from laketier.spi import FeatureNotSupported
from laketier_iceberg.removal import delete_old_metadata
from laketier_iceberg.unread import FORMAT

log = logging.getLogger(__name__)

_WRITTEN = 2
_NOT_FOUND = 404


def commit(table: Table, updates: Iterable[TableUpdate], *requirements: TableRequirement) -> None:
    """Commit ``updates`` once, if ``requirements`` hold and the table is the same one. Then delete metadata files that
    are too old, if the table's properties say so. Raises what the catalog raises, also ``CommitFailedException`` for a
    table that is not there any more, and `FeatureNotSupported` for one whose metadata this process would have to write
    and can't."""
    same = AssertTableUUID(uuid=table.metadata.table_uuid)
    version = table.metadata.format_version
    if version > _WRITTEN and isinstance(table.catalog, MetastoreCatalog):
        # It would find out when it has made the file, and leave it there.
        raise FeatureNotSupported(
            f"changing tables of version {version}",
            format=FORMAT,
            reason=f"pyiceberg writes the metadata of versions up to {_WRITTEN}",
            fix="Change it with Spark.",
        )
    try:
        landed = table.catalog.commit_table(table, (same, *requirements), tuple(updates))
    except RESTError as error:
        if not _is_not_found(error):
            raise
        raise CommitFailedException(str(error)) from error
    try:
        delete_old_metadata(table.io, table.metadata, landed.metadata)
    except Exception as error:  # noqa: BLE001 - it landed: nothing that fails now may make that unknown
        log.warning("old metadata files could not be deleted, orphan collection will find them: %s", error)


def _is_not_found(error: RESTError) -> bool:
    """pyiceberg has an error of a table that is not there for each request but a commit."""
    return getattr(getattr(error.__cause__, "response", None), "status_code", None) == _NOT_FOUND


@contextmanager
def schema_change(table: Table) -> Iterator[UpdateSchema]:
    """A change of the schema, committed once at the end of the block. Raises what the catalog raises.

    pyiceberg's own transaction works the change out, and does not commit it: it deletes any location that the table's
    old metadata names.
    """
    before = table.metadata
    transaction = Transaction(table)
    with transaction.update_schema() as update:
        yield update
    updates = _schema_updates(before, transaction.table_metadata)
    if updates:
        commit(
            table,
            updates,
            AssertCurrentSchemaId.model_validate({"current-schema-id": before.current_schema_id}),
            AssertLastAssignedFieldId.model_validate({"last-assigned-field-id": before.last_column_id}),
        )


def _schema_updates(before: TableMetadata, after: TableMetadata) -> list[TableUpdate]:
    updates: list[TableUpdate] = []
    if after.current_schema_id != before.current_schema_id:
        known = {schema.schema_id for schema in before.schemas}
        if after.current_schema_id in known:
            updates.append(SetCurrentSchemaUpdate.model_validate({"schema-id": after.current_schema_id}))
        else:
            last_added = -1
            updates.append(AddSchemaUpdate.model_validate({"schema": after.schema()}))
            updates.append(SetCurrentSchemaUpdate.model_validate({"schema-id": last_added}))
    changed = {key: value for key, value in after.properties.items() if before.properties.get(key) != value}
    if changed:  # the name mapping, which follows the columns
        updates.append(SetPropertiesUpdate(updates=changed))
    return updates
