"""The format's table: what manifests and the folder have to hold beyond what the toolbox knows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from laketier.kit import LocalFolder
from laketier.kit.manifests import (
    FileEntry,
    Manifest,
    ManifestLayout,
    ManifestLog,
    ManifestState,
    ManifestTable,
    growth_of,
)
from laketier.spi import (
    CorruptTable,
    Features,
    StagedFile,
    StagedFileLost,
    TableDescriptor,
    UnsafeTable,
    WriteResult,
)
from laketier_localfile.claims import details_of, format_of, seal_of
from laketier_localfile.features import FEATURES
from laketier_localfile.file_formats.known import of_table
from laketier_localfile.growing import check_growing, check_open, recorded, without_growing
from laketier_localfile.layout import LAYOUT, STAGED_SUFFIX, final_path
from laketier_localfile.names import PARQUET
from laketier_localfile.partitioning import Partitioning, check_partitioning
from laketier_localfile.results import odd_claim
from laketier_localfile.settle import settle
from laketier_localfile.stretch import Stretch
from laketier_localfile.types import check_types


@dataclass(frozen=True)
class LocalFileTable(ManifestTable):
    """Data files in Hive-style folders, which plain readers find by themselves."""

    layout: ClassVar[ManifestLayout] = LAYOUT
    features: ClassVar[Features] = FEATURES
    transforms: ClassVar[bool] = True

    @classmethod
    def check_types(cls, schema: pa.Schema) -> None:
        check_types(schema)

    @classmethod
    def check_descriptor(cls, descriptor: TableDescriptor) -> None:
        of_table(descriptor.properties).check_types(descriptor.schema)
        check_partitioning(descriptor)

    def check_folder(self) -> None:
        refuse_several_devices(self.location)

    def check_open(self, entries: Sequence[FileEntry]) -> None:
        check_open(self.location, entries)

    def check_staged(self, state: ManifestState, results: Sequence[WriteResult]) -> None:
        super().check_staged(state, without_growing(results))
        check_growing(self.location, state, results)
        files = [file for result in results for file in result.files]
        for file in files:
            why = odd_claim(_whole(file), state.metadata)
            if why is not None:
                raise _replaced(self.location / file.path, why)
            self._refuse_replaced(state, file)
        folder = LocalFolder(self.location)
        partitioning = Partitioning.of(state.metadata)
        for file in files:
            folder.refuse_links(final_path(file.path, partitioning.folders(file.partition)))

    def entry(self, state: ManifestState, file: StagedFile) -> FileEntry:
        partitioning, before, whole = Partitioning.of(state.metadata), recorded(state, file), _whole(file)
        growth = growth_of(file)
        if growth is not None and before is not None and before.growth is not None:
            growth = replace(growth, pipeline=before.growth.pipeline)
        staged = final_path(file.path, partitioning.folders(file.partition))
        return FileEntry(
            path=staged if before is None else before.path,
            rows=whole.rows,
            bytes=whole.bytes,
            schema=state.head.metadata_at,
            partition=tuple(file.partition),
            bucket=file.bucket,
            details=details_of(file),
            transformed=partitioning.is_more,
            growth=growth,
        )

    def settle(self, manifests: ManifestLog, head: Manifest) -> None:
        settle(manifests, head)

    def _refuse_replaced(self, state: ManifestState, file: StagedFile) -> None:
        """The size is that of what was written. So is its seal, or no reader would take the file for it."""
        path = self.location / file.path
        chosen = of_table(state.metadata.properties, where=str(self.location))
        if format_of(file.payload) != chosen.name or not file.path.removesuffix(STAGED_SUFFIX).endswith(
            chosen.suffixes
        ):
            raise _replaced(path, f"it is no file of the table's format, {chosen.name}")
        try:
            with os.fdopen(LocalFolder(self.location).open(file.path), "rb") as data:
                there, whole = pa.PythonFile(data), _whole(file)
                growth = growth_of(file)
                if growth is not None and growth.is_open:
                    there = Stretch(0, whole.bytes, 0).bytes_of(there)
                found = chosen.seal(there, whole.bytes)
        except (FileNotFoundError, CorruptTable) as error:
            raise _replaced(path, str(error)) from error
        if found != seal_of(file):
            raise _replaced(path, "its footer is another one" if chosen.name == PARQUET else "its bytes are others")


def _whole(file: StagedFile) -> StagedFile:
    """With the rows and bytes of all of the file, where an attempt appended to it."""
    growth = growth_of(file)
    return file if growth is None else replace(file, rows=growth.rows + file.rows, bytes=growth.bytes + file.bytes)


def _replaced(path: Path, why: str) -> StagedFileLost:
    return StagedFileLost(
        "a staged file is not the one that its writer left; nothing was published",
        where=str(path),
        why=why,
        fix="Find out what writes into the table's folder, and run the round again: it stages its files again.",
    )


def refuse_several_devices(location: Path) -> None:
    """Raise `UnsafeTable` when the table's own folders are on several file systems: files could not be moved."""
    device = os.stat(location).st_dev
    for name in sorted(LAYOUT.own_folders):
        try:
            other = os.stat(location / name).st_dev
        except FileNotFoundError:
            continue
        if other != device:
            raise UnsafeTable(
                f"{name} is on another file system than the table",
                where=str(location),
                why="files are published by moving them, which works only within one",
                fix="Remove the mount or symbolic link; stage on the table's own file system.",
            )
