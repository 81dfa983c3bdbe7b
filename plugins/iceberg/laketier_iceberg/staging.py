"""What becomes of the metadata that pyiceberg makes of a commit, before it is written: its times are put in order.

A private method of pyiceberg (0.12) is the only place where that is possible for every commit, also for changes of the
schema. Catalogs behind a server (REST) have none: the server writes the metadata, by its own clock.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from laketier_iceberg.times import in_order, mended

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

_finish: ContextVar[Callable[[TableMetadata, TableMetadata], TableMetadata]] = ContextVar("finish", default=in_order)


def keep_times(catalog: Catalog) -> bool:
    """Let each commit through ``catalog`` keep the times of a table in order. False where a server writes them. Once is
    enough, and again does nothing."""
    from pyiceberg.catalog import MetastoreCatalog

    if not isinstance(catalog, MetastoreCatalog):
        return False
    if "_update_and_stage_table" in vars(catalog):
        return True
    patched: Any = catalog
    stage = patched._update_and_stage_table

    def stage_in_order(current_table: Table | None, *rest: Any) -> Any:
        staged = stage(current_table, *rest)
        if current_table is not None:
            staged.metadata = _finish.get()(current_table.metadata, staged.metadata)
        return staged

    patched._update_and_stage_table = stage_in_order
    return True


def commit_mended(table: Table, now: int) -> None:
    """Put the times of a table in order, and none later than ``now``, in one atomic commit of the catalog. Raises what
    the catalog raises."""
    from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, SetPropertiesUpdate

    current = table.metadata.current_snapshot()
    requirements = (
        AssertTableUUID(uuid=table.metadata.table_uuid),
        AssertRefSnapshotId.model_validate(
            {"ref": "main", "snapshot-id": None if current is None else current.snapshot_id}
        ),
    )
    token = _finish.set(lambda _, updated: mended(updated, now))
    try:
        # Without an update there is no commit.
        table.catalog.commit_table(table, requirements, (SetPropertiesUpdate(updates={}),))
    finally:
        _finish.reset(token)
