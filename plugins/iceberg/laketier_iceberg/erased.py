"""Watermarks that another tool removed from the properties, together with the snapshots that told of them. Driver.

Metadata files of before are retained for a while, a hundred by default, and hold the properties of their time.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from laketier.spi import COLLECTOR, CorruptTable, RolledBack, Watermark
from laketier_iceberg.history import WATERMARK
from laketier_iceberg.stored import DAMAGE, document_at

if TYPE_CHECKING:
    from pyiceberg.table import Table

_REQUESTS = 16


def refuse_erased(table: Table, pipeline: str) -> None:
    """Raise `RolledBack` where the properties and the retained snapshots say nothing of ``pipeline``, and an older
    metadata file has its watermark. Reads these only where snapshots have expired: otherwise they would tell."""
    metadata = table.metadata
    there = {snapshot.sequence_number for snapshot in metadata.snapshots}
    if pipeline == COLLECTOR or all(number in there for number in range(1, metadata.next_sequence_number())):
        return
    key = WATERMARK + pipeline
    older = [entry.metadata_file for entry in reversed(metadata.metadata_log)]
    with ThreadPoolExecutor(_REQUESTS) as pool:
        files = zip(older, pool.map(lambda file: _properties(table.io.properties, file), older), strict=True)
        found = next(((file, each[key]) for file, each in files if key in each), None)
    if found is None:
        return
    file, text = found
    try:
        watermark = Watermark.from_json(text)
    except CorruptTable:
        watermark = None
    if watermark is not None and watermark.forgotten:
        return
    told = "a watermark" if watermark is None else f"epoch {watermark.token.epoch}"
    raise RolledBack(
        f"an older metadata file of the table holds {told} of the pipeline, which is gone from the properties",
        where=f"pipeline {pipeline!r}",
        why=f"another program removed {key}, perhaps with all properties that it does not know, and the snapshots "
        f"that told of it have expired; {file} has it",
        fix="Set that property again as this file has it, or find out which epoch the table's rows end with and run "
        "`laketier pipeline adopt`. If none of its rows are there, run `laketier pipeline forget`.",
    )


def _properties(options: Mapping[str, Any], file: str) -> Mapping[str, str]:
    """Those of an older metadata file; none where it is gone, or no such file any more: nothing else needs it."""
    try:
        found = document_at(options, file).get("properties")
    except (FileNotFoundError, *DAMAGE):
        return {}
    return found if isinstance(found, dict) else {}
