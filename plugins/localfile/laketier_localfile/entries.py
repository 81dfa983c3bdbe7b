"""What a manifest says of files that lie there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.manifests import FileEntry
from laketier.kit.partition import partition_text
from laketier.spi import AdoptedTable, IncompatibleData, TableDescriptor, TableInfo
from laketier_localfile.claims import entry_details
from laketier_localfile.file_formats.interface import Described, FileFormat
from laketier_localfile.looking import LyingFile
from laketier_localfile.names import FILE_FORMAT, PARQUET
from laketier_localfile.outside import IN_NAMES
from laketier_localfile.partitioning import Partitioning
from laketier_localfile.pruning import decode

_INTEGER = re.compile(r"-?\d+\Z", re.ASCII)


def adopted_table(
    info: TableInfo,
    entries: Sequence[FileEntry],
    left_out: Mapping[str, str],
    *,
    told: tuple[str, ...] = (),
    made: bool = True,
) -> AdoptedTable:
    """What the table holds."""
    return AdoptedTable(
        table=info.with_handle(None),
        files=len(entries),
        rows=sum(entry.rows for entry in entries),
        bytes=sum(entry.bytes for entry in entries),
        left_out=dict(left_out),
        told=told,
        made=made,
    )


def entry_of(
    file: LyingFile, table: TableDescriptor, partition: tuple[tuple[str, str | None], ...], bucket: int | None = None
) -> FileEntry:
    """The manifest's entry of a file."""
    described = Described(file.told.described.digest, file.stats_for(table.schema))
    details = entry_details(file.file_format.name, described)
    # Of a file that does not tell its columns, all are there for a writer of ours.
    exact = _is_exact(file.schema, table.schema) if file.file_format.tells_types else file.is_own
    if not exact:
        details["fitted"] = True
    return FileEntry(
        path=file.path,
        rows=file.rows,
        bytes=file.bytes,
        schema=0,
        partition=partition,
        bucket=bucket,
        details=details,
        transformed=Partitioning.of(table).is_more,
    )


def properties_of(chosen: FileFormat, *, in_names: bool) -> dict[str, str]:
    """The properties of a table of such files. ``in_names``: see `IN_NAMES`."""
    found = {} if chosen.name == PARQUET else {FILE_FORMAT: chosen.name}
    return found | ({IN_NAMES: "true"} if in_names else {})


@lru_cache(maxsize=4096)
def canonical_text(text: str | None, kind: pa.DataType) -> str | None:
    """The text of a folder's value as a manifest has it. Raises `IncompatibleData` for one that is none of ``kind``."""
    try:
        if text is not None and pt.is_integer(kind) and not _INTEGER.match(text):
            raise ValueError("a whole number is written with digits alone")  # Arrow takes 0x10 for 16
        value = decode(text, kind) if text is None or not _is_parsed(kind) else pa.scalar(text).cast(kind).as_py()
        pa.scalar(value, kind)  # a text is no double, and 300 is no int8
        return partition_text(value)
    except (ValueError, TypeError, ArithmeticError, pa.ArrowException) as error:
        raise IncompatibleData(
            f"the folder's value {text!a} is no {kind}",
            why=str(error),
            fix="Rename the folder, or give the column's type.",
        ) from error


def _is_parsed(kind: pa.DataType) -> bool:
    """Types of which folders may have other texts than ours: 01, True, 1.50. Python takes 1_000 for a number."""
    return bool(pt.is_boolean(kind) or pt.is_integer(kind) or pt.is_decimal(kind))


def _is_exact(file: pa.Schema, table: pa.Schema) -> bool:
    return all(each.name in file.names and file.field(each.name).type.equals(each.type) for each in table) and len(
        file
    ) == len(table)
