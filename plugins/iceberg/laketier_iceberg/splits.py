"""One data file as a split, with all that its reader needs. Driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from laketier.spi import FeatureNotSupported, LakeSplit
from laketier_iceberg.resolution import Resolution
from laketier_iceberg.spec import BUCKETS_PROPERTY, FORMAT

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask
    from pyiceberg.table.metadata import TableMetadata


WITHOUT_DELETES = (
    "Remove the deletes with Spark: CALL system.rewrite_data_files(table => …, options => map('rewrite-all', 'true', "
    "'remove-dangling-deletes', 'true')); or read the table with Spark."
)
"""Data files that are rewritten keep their sequence number, so old deletes stay theirs until they are removed, too."""
_AS_PARQUET = (
    "Write them anew with Spark: set write.delete.format.default to parquet, then CALL system."
    "rewrite_position_delete_files(table => …, options => map('rewrite-all', 'true')); or read the table with Spark."
)


def split_of(index: int, task: FileScanTask, resolution: Resolution, plain: frozenset[str]) -> LakeSplit:
    """Raises `FeatureNotSupported` for files that only other readers can read."""
    file = task.file
    if not str(file.file_format).upper().endswith("PARQUET"):
        raise FeatureNotSupported(
            "reading other files than Parquet", format=FORMAT, reason=f"{file.file_path} is none", fix="Use Spark."
        )
    _refuse_encrypted(file)
    partition, bucket = _partition(task, resolution.metadata)
    deletes = tuple(_delete(delete) for delete in task.delete_files)
    return LakeSplit(
        index=index,
        rows=None if task.delete_files else file.record_count,
        bytes=file.file_size_in_bytes,
        bucket=bucket,
        partition=partition,
        plain_parquet=file.file_path if file.file_path in plain and not task.delete_files else None,
        files=(file.file_path,),
        payload=resolution.listed(file, deletes),
    )


def _refuse_encrypted(file: DataFile) -> None:
    if file.key_metadata is not None:
        raise FeatureNotSupported(
            "reading encrypted files", format=FORMAT, reason=f"{file.file_path} has a key of its own", fix="Use Spark."
        )


def _delete(file: Any) -> str:
    """The path of a file of positional deletes. Raises `FeatureNotSupported` for other kinds."""
    kind = str(file.file_format).upper().rpartition(".")[2]
    if kind == "PARQUET":
        return str(file.file_path)
    vectors = kind == "PUFFIN"
    raise FeatureNotSupported(
        "reading deletion vectors" if vectors else "reading deletes in other files than Parquet",
        format=FORMAT,
        reason=f"{file.file_path} is of the format {kind}",
        fix=WITHOUT_DELETES if vectors else _AS_PARQUET,
    )


def _partition(task: FileScanTask, metadata: TableMetadata) -> tuple[tuple[tuple[str, str | None], ...], int]:
    spec = metadata.specs()[task.file.spec_id]
    bucket_field = metadata.properties.get(BUCKETS_PROPERTY)
    bucket = -1
    shown: list[tuple[str, str | None]] = []
    types: Mapping[int, Any] = {f.field_id: f.field_type for s in metadata.schemas for f in s.fields}
    for position, field in enumerate(spec.fields):
        value = task.file.partition[position]
        if field.name == bucket_field and value is not None:
            bucket = int(value)
        kind = types.get(field.source_id)
        shown.append((field.name, None if value is None or kind is None else _shown(field, kind, value)))
    return tuple(shown), bucket


def _shown(field: Any, kind: Any, value: Any) -> str:
    try:
        return str(field.transform.to_human_string(kind, value))
    except (OverflowError, ValueError):
        return str(value)  # beyond the years 1 to 9999, where Python has no dates
