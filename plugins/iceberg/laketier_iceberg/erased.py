"""What older metadata files tell of a watermark that properties and snapshots of today say too little of. Driver.

Metadata files of before are retained for a while, a hundred by default, and hold the properties and the snapshots of
their time. They are read only where snapshots have expired: otherwise the history itself tells.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from laketier.spi import COLLECTOR, CorruptTable, RolledBack, Watermark
from laketier_iceberg.history import WATERMARK, History, rolled_back
from laketier_iceberg.stored import DAMAGE, document_at

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

_REQUESTS = 16
"""How many of them are read at a time."""


def refuse_rolled_back(table: Table, pipeline: str, watermark: Watermark) -> None:
    """Raise `RolledBack` where the newest metadata file that can say it says that the snapshot of ``watermark`` was no
    part of the history: main was set back, others went on, and what came in between has expired since."""
    history = History(table.metadata)
    snapshot_id, sequence = watermark.snapshot_id, history.sequence(pipeline)
    if pipeline == COLLECTOR or snapshot_id is None or history.carries(snapshot_id, sequence) is not None:
        return
    for _, document in _older(table):
        metadata = _parsed(document)
        if metadata is None or (sequence is None and metadata.snapshot_by_id(snapshot_id) is None):
            continue  # perhaps of before the snapshot
        if sequence is not None and metadata.next_sequence_number() <= sequence:
            return  # of before the snapshot
        carries = History(metadata).carries(snapshot_id, sequence)
        if carries is False:
            raise rolled_back(watermark, pipeline)
        if carries:
            return


def refuse_erased(table: Table, pipeline: str) -> None:
    """Raise `RolledBack` where the properties and the retained snapshots say nothing of ``pipeline``, and an older
    metadata file has its watermark."""
    metadata = table.metadata
    there = {snapshot.sequence_number for snapshot in metadata.snapshots}
    if pipeline == COLLECTOR or all(number in there for number in range(1, metadata.next_sequence_number())):
        return
    key = WATERMARK + pipeline
    files = ((file, _properties(document)) for file, document in _older(table))
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


def _older(table: Table) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Location and content of each older metadata file, the newest first. Nothing is in one that is gone, or that is no
    such file any more: nothing else needs it."""

    def read(file: str) -> Mapping[str, Any]:
        try:
            return document_at(table.io.properties, file)
        except (FileNotFoundError, *DAMAGE):
            return {}

    left = (entry.metadata_file for entry in reversed(table.metadata.metadata_log))
    with ThreadPoolExecutor(_REQUESTS) as pool:
        while some := list(itertools.islice(left, _REQUESTS)):
            yield from zip(some, pool.map(read, some), strict=True)


def _properties(document: Mapping[str, Any]) -> Mapping[str, str]:
    found = document.get("properties")
    return found if isinstance(found, dict) else {}


def _parsed(document: Mapping[str, Any]) -> TableMetadata | None:
    """None for what is no metadata of a table that pyiceberg knows."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.table.metadata import TableMetadataUtil

    try:
        return TableMetadataUtil.parse_obj(dict(document))
    except (KeyError, TypeError, ValueError, ValidationError):
        return None
