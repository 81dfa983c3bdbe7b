"""Finds the files that give exactly a table's rows and columns to a reader that goes by names, as Spark's own does.
Driver."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa

from laketier_iceberg.files import Files
from laketier_iceberg.metrics import Leaf, leaves
from laketier_iceberg.resolution import NAME_MAPPING
from laketier_iceberg.types import to_arrow

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata

log = logging.getLogger(__name__)

_Columns = frozenset[tuple[int, str, str]]
"""Field id, dotted name and type of each Parquet column."""

MOST_FOOTERS = 512
"""That one plan looks at: with more files that nobody vouches for, none is plain."""
_AT_ONCE = 16
_REMEMBERED = 50_000
_seen: OrderedDict[tuple[str, int], _Columns] = OrderedDict()
"""Path and size of a file, which never changes → its columns; none for one that has some without field ids."""


def plain_files(
    metadata: TableMetadata, schema: Schema, files: Sequence[DataFile], io: Mapping[str, str]
) -> frozenset[str]:
    """The paths of those of ``files``, whose deletes are left to the caller.

    A column that was renamed, moved into another type or dropped somewhen makes names ambiguous. Where the table has
    forgotten a schema, nothing in it says so, and the files' footers are looked at, each once in a process.
    """
    now = _columns(leaves(to_arrow(schema)))
    if NAME_MAPPING in metadata.properties or _is_reshaped(metadata, now):
        return frozenset()
    ids = {field_id for field_id, _, _ in now}
    found = [file for file in files if _is_parquet(file) and set(file.column_sizes or {}) == ids]
    if not _may_have_forgotten(metadata):
        return frozenset(file.file_path for file in found)
    columns = _in_footers(found, Files(io))
    return frozenset(file.file_path for file in found if columns.get(_key(file)) == now)


def _is_parquet(file: DataFile) -> bool:
    return str(file.file_format).upper().endswith("PARQUET")


def _columns(given: Sequence[Leaf]) -> _Columns:
    return frozenset((leaf.field_id, leaf.name, str(leaf.type)) for leaf in given)


def _is_reshaped(metadata: TableMetadata, now: _Columns) -> bool:
    """Whether a schema that is there has a column of ``now`` otherwise."""
    ids = {field_id for field_id, _, _ in now}
    return any(
        column[0] in ids and column not in now
        for schema in metadata.schemas
        for column in _columns(leaves(to_arrow(schema)))
    )


def _may_have_forgotten(metadata: TableMetadata) -> bool:
    """Whether a schema may have been removed (Java's expiry with clean_expired_metadata). Ids do not tell: the next
    schema takes that of the last one that went, and a column that was renamed back and forth leaves no gap. So a schema
    may be missing wherever a snapshot is."""
    if not {schema.schema_id for schema in metadata.schemas} >= set(range(metadata.current_schema_id + 1)):
        return True
    ids = {snapshot.snapshot_id for snapshot in metadata.snapshots}
    numbers = {snapshot.sequence_number for snapshot in metadata.snapshots}
    return not (
        numbers >= set(range(1, metadata.next_sequence_number()))
        and all(each.parent_snapshot_id is None or each.parent_snapshot_id in ids for each in metadata.snapshots)
    )


def _key(file: DataFile) -> tuple[str, int]:
    return file.file_path, file.file_size_in_bytes


def _in_footers(given: Sequence[DataFile], files: Files) -> Mapping[tuple[str, int], _Columns]:
    missing = {key for file in given if (key := _key(file)) not in _seen}
    if len(missing) > MOST_FOOTERS:
        return {}
    if missing:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for key, columns in zip(missing, pool.map(lambda key: _in_footer(key[0], files), missing), strict=True):
                if columns is not None:
                    _seen[key] = columns
    found = {key: _seen[key] for file in given if (key := _key(file)) in _seen}
    while len(_seen) > _REMEMBERED:
        _seen.popitem(last=False)
    return found


def _in_footer(path: str, files: Files) -> _Columns | None:
    import pyarrow.parquet as pq

    try:
        with files.open(path) as source, pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as file:
            return _columns(leaves(file.schema_arrow))
    except (KeyError, TypeError):
        return frozenset()  # columns without ids
    except (OSError, pa.ArrowException) as error:
        log.info("the footer of %s was not read, so Spark is not given it as plain Parquet: %s", path, error)
        return None
