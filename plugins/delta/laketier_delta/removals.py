"""Taking files out of a table, in the commit that puts others in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from laketier.kit.staged import replaced_files
from laketier.spi import WriteResult
from laketier_delta.engine import arrow_schema, panics_as_errors
from laketier_delta.partitions import log_text
from laketier_delta.pruning import partition_rows

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import RemoveAction


def removals(handle: DeltaTable, results: Sequence[WriteResult], now: int, *, where: str) -> list[RemoveAction]:
    """The actions that remove what ``results`` replace (relative to the table, as `DeltaSource.plan` names files) from
    the handle's version. ``now``: ms since the epoch, for their tombstones. Raises `CommitError` for a path that is not
    in the version: delta-rs would write a tombstone for any."""
    from deltalake.transaction import RemoveAction

    if not any(result.replaced for result in results):
        return []
    with panics_as_errors():
        files = pa.table(handle.get_add_actions())
    there = {unquote(path): index for index, path in enumerate(files.column("path").to_pylist())}
    columns = list(handle.metadata().partition_columns)
    values = partition_rows(files, arrow_schema(handle), columns) if columns else None
    sizes = files.column("size_bytes").to_pylist()
    return [
        RemoveAction(
            path,
            True,
            now,
            sizes[there[path]],
            {name: log_text(value) for name, value in values[there[path]].items()} if values else {},
        )
        for path in replaced_files(results, there, where=where)
    ]
