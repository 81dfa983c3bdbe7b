"""What a manifest says of files that lie there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

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


def canonical_text(text: str | None, kind: pa.DataType) -> str | None:
    """The text of a folder's value as a manifest has it. Raises `IncompatibleData` for one that is none of ``kind``."""
    try:
        return partition_text(decode(text, kind))
    except (ValueError, TypeError, ArithmeticError) as error:
        raise IncompatibleData(
            f"the folder's value {text!a} is no {kind}",
            why=str(error),
            fix="Rename the folder, or give the column's type.",
        ) from error


def _is_exact(file: pa.Schema, table: pa.Schema) -> bool:
    return all(each.name in file.names and file.field(each.name).type.equals(each.type) for each in table) and len(
        file
    ) == len(table)
