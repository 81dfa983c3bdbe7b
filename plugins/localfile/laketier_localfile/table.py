"""The format's table: what manifests and the folder have to hold beyond what the toolbox knows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
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
from laketier.kit.staged import refuse_foreign, refuse_lost
from laketier.spi import (
    CorruptTable,
    Features,
    StagedFile,
    StagedFileLost,
    TableDescriptor,
    TableNotFound,
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
from laketier_localfile.place import in_s3
from laketier_localfile.results import odd_claim
from laketier_localfile.settle import settle
from laketier_localfile.stretch import Stretch
from laketier_localfile.types import check_types


@dataclass(frozen=True)
class LocalFileTable(ManifestTable):
    """Data files in Hive-style folders, which plain readers find by themselves."""

    layout: ClassVar[ManifestLayout] = LAYOUT
    features: ClassVar[Features] = FEATURES

    @classmethod
    def check_types(cls, schema: pa.Schema) -> None:
        check_types(schema)

    @classmethod
    def check_descriptor(cls, descriptor: TableDescriptor) -> None:
        of_table(descriptor.properties).check_types(descriptor.schema)
        check_partitioning(descriptor)

    def check_folder(self) -> None:
        bucket, folder = in_s3(self.place), self.store.folder
        if bucket is not None:
            bucket.prove()
        if folder is not None:
            refuse_several_devices(folder)

    def check_open(self, entries: Sequence[FileEntry]) -> None:
        if self.store.folder is not None:
            check_open(self.store.folder, entries)

    def check_staged(self, state: ManifestState, results: Sequence[WriteResult]) -> None:
        bucket = in_s3(self.place)
        if bucket is None:
            super().check_staged(state, without_growing(results))
            check_growing(self.location, state, results)
        else:  # who looks at a file is told its size with it
            refuse_foreign(results, self.layout.attempt_of, where=self.store.root)
        files = [file for result in results for file in result.files]
        for file in files:
            why = odd_claim(_whole(file), state.metadata)
            if bucket is not None and growth_of(file) is not None:
                why = "no file of S3 stays open"
            if why is not None:
                raise _replaced(self.store.where(file.path), why)
        if bucket is not None:
            bucket.at_once(lambda file: self._refuse_replaced(state, file), files)
        else:
            for file in files:
                self._refuse_replaced(state, file)
        partitioning = Partitioning.of(state.metadata)
        for file in files:
            self.store.refuse_links(final_path(file.path, partitioning.folders(file.partition)))

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
        bucket = in_s3(self.place)
        if bucket is None:
            settle(manifests, head)
        else:
            from laketier_localfile.s3.settle import settle as settle_in_s3

            settle_in_s3(manifests, bucket, head)

    def _refuse_replaced(self, state: ManifestState, file: StagedFile) -> None:
        """The size is that of what was written. So is its seal, or no reader would take the file for it."""
        path = self.store.where(file.path)
        chosen = of_table(state.metadata.properties, where=self.store.root)
        if format_of(file.payload) != chosen.name or not file.path.removesuffix(STAGED_SUFFIX).endswith(
            chosen.suffixes
        ):
            raise _replaced(path, f"it is no file of the table's format, {chosen.name}")
        try:
            with self._opened(file) as data:
                there, whole, growth = data, _whole(file), growth_of(file)
                if growth is not None and growth.is_open:
                    there = Stretch(0, whole.bytes).bytes_of(there)
                found = chosen.seal(there, whole.bytes)
        except (FileNotFoundError, CorruptTable) as error:
            raise _replaced(path, str(error)) from error
        if found != seal_of(file):
            raise _replaced(path, "its footer is another one" if chosen.name == PARQUET else "its bytes are others")

    def _opened(self, file: StagedFile) -> pa.NativeFile:
        bucket = in_s3(self.place)
        if bucket is None:
            return pa.PythonFile(os.fdopen(LocalFolder(self.location).open(file.path), "rb"), "r")
        found: pa.NativeFile | None = None
        with suppress(FileNotFoundError):
            found = bucket.open(file.path)
        refuse_lost(file.path, None if found is None else found.size(), file.bytes, where=self.store.root)
        assert found is not None  # or it was refused
        return found


def _whole(file: StagedFile) -> StagedFile:
    """With the rows and bytes of all of the file, where an attempt appended to it."""
    growth = growth_of(file)
    return file if growth is None else replace(file, rows=growth.rows + file.rows, bytes=growth.bytes + file.bytes)


def _replaced(path: str, why: str) -> StagedFileLost:
    return StagedFileLost(
        "a staged file is not the one that its writer left; nothing was published",
        where=path,
        why=why,
        fix="Find out what writes into the table's folder, and run the round again: it stages its files again.",
    )


def refuse_several_devices(location: Path) -> None:
    """Raise `UnsafeTable` when the table's own folders are on several file systems: files could not be moved. Raises
    `TableNotFound` where its folder is gone, as somebody dropped it since it was looked at."""
    try:
        device = os.stat(location).st_dev
    except FileNotFoundError as error:
        raise TableNotFound("the table was dropped meanwhile", where=str(location)) from error
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
