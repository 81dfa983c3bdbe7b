"""Tables of files that lie there: folders of others, and tables whose manifests were lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.kit import LocalFolder
from laketier.kit.access import access
from laketier.kit.manifests import FileEntry, ManifestCatalog
from laketier.kit.manifests.manifest import ADOPTED
from laketier.kit.partition import partition_text
from laketier.spi import (
    AdoptedTable,
    IncompatibleData,
    IncompatibleTable,
    LakeAdoption,
    PartitionField,
    TableDescriptor,
    TableInfo,
    TableNotFound,
    TablePath,
)
from laketier.tables.hive import HivePartitions, values_of
from laketier.tables.inference import SchemaSet
from laketier_localfile.layout import IN_PROGRESS, MANIFESTS, SUPERSEDED, attempt_of
from laketier_localfile.lying import LyingFile, LyingFiles, look_at, only_value
from laketier_localfile.pruning import decode
from laketier_localfile.table import refuse_several_devices

IN_NAMES = "laketier.partitions-in-names"
"""The property of a table some of whose files do not hold their partition columns: plain readers take them from the
names of folders."""
_FIX = "Restore that folder from a backup."

Progress = Callable[[int, int], None] | None


@dataclass(frozen=True)
class LocalFileAdoption(LakeAdoption):
    """See `LakeAdoption`."""

    catalog: ManifestCatalog

    def adopt(
        self,
        path: TablePath,
        *,
        partitions: bool = False,
        types: Mapping[str, pa.DataType] | None = None,
        on_progress: Progress = None,
    ) -> AdoptedTable:
        location = self.catalog.location(path)
        there = self._there(path)
        if there is not None:
            return there
        with access("looking at the folder", location):
            lying = LyingFiles.below(location)
            refuse_lost(location, lying)
            _refuse_none(location, lying)
            refuse_several_devices(location)
            schemas = SchemaSet()
            files = look_at(location, lying, schemas, on_progress)
        hive = HivePartitions.of(list(lying.files)) if partitions else HivePartitions()
        schema = hive.added_to(schemas.schema(types))
        in_names = any(name not in file.schema.names for file in files for name in hive.names)
        descriptor = TableDescriptor(
            schema,
            tuple(map(PartitionField, hive.names)),
            properties={IN_NAMES: "true"} if in_names else {},
        )
        entries = [entry_of(file, descriptor, _of_folders(location, file, schema, hive.names)) for file in files]
        info = self.catalog.create_of(
            path, descriptor, entries, origin=ADOPTED, last_look=lambda: lying.refuse_changed(location)
        )
        return adopted_table(info, entries, lying.left_out)

    def _there(self, path: TablePath) -> AdoptedTable | None:
        """The table that an earlier call made, for who was killed before it could tell."""
        try:
            info = self.catalog.load_table(path)
        except TableNotFound:
            return None
        first = self.catalog.table_type(self.catalog.location(path)).manifests().read(0)
        if first.origin != ADOPTED:
            raise IncompatibleTable(
                "the folder is a table of laketier already",
                where=str(self.catalog.location(path)),
                fix=f"Read it as {path}.",
            )
        return adopted_table(info, first.added, {}, made=False)


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
    details: dict[str, Any] = {"footer": file.footer, "stats": file.stats_for(table.schema)}
    if not _is_exact(file.schema, table.schema):
        details["fitted"] = True
    return FileEntry(
        path=file.path,
        rows=file.rows,
        bytes=file.bytes,
        schema=0,
        partition=partition,
        bucket=bucket,
        details=details,
    )


def refuse_lost(location: Path, lying: LyingFiles) -> None:
    """Raise `IncompatibleTable` for what is left of a table of ours: some of its files may not count."""
    folder = LocalFolder(location)
    kept = [name for name in (IN_PROGRESS, SUPERSEDED) if any(True for _ in folder.files(name))]
    own = [path for path in lying.files if attempt_of(path) is not None]
    if kept or own:
        raise IncompatibleTable(
            "the folder is a table of laketier whose manifests are gone",
            where=str(location),
            why=f"it holds {(kept or own)[0]}, and no {MANIFESTS}/table.json",
            fix=_FIX,
        )


def _refuse_none(location: Path, lying: LyingFiles) -> None:
    if not lying.files:
        raise IncompatibleData(
            "the folder holds no Parquet file",
            where=str(location),
            why=f"it holds {len(lying.left_out):,} other files" if lying.left_out else "it is empty",
            fix="Name a folder that holds files named *.parquet.",
        )


def _of_folders(
    location: Path, file: LyingFile, schema: pa.Schema, names: tuple[str, ...]
) -> tuple[tuple[str, str | None], ...]:
    """What the folders of a file say, as the text that a manifest has. Raises `IncompatibleData` where the file says
    something else."""
    if not names:
        return ()
    found = []
    for name, text in values_of(file.path):
        canonical = _canonical(text, schema.field(name).type)
        if name in file.schema.names and file.rows:
            inside = only_value(location, file.path, name)
            if inside != canonical:
                raise IncompatibleData(
                    f"{file.path!r} holds {inside!a} of column {name!r}, and its folder says {text!a}",
                    where=str(location),
                    fix="Move the file to its own folder, or do without partitions.",
                )
        found.append((name, canonical))
    return tuple(found)


def _canonical(text: str | None, kind: pa.DataType) -> str | None:
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
