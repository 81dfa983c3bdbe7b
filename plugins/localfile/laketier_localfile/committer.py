"""The atomic step: manifest N+1, taken by exclusive create, then everything else rolled forward."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.fs as pafs

from laketier.kit import LocalFolder, TableFolder
from laketier.kit.failpoints import failpoint
from laketier.kit.staged import check_staged, own_paths, remove, replaced_files
from laketier.spi import (
    CommitterInitContext,
    CorruptTable,
    LakeCommitResult,
    LakeCommitter,
    LaketierError,
    StagedFile,
    StagedFileLost,
    TableDescriptor,
    TableNotFound,
    TableState,
    UnsafeTable,
    Watermark,
    WriteResult,
    host_time,
    schema_fingerprint,
    time_of_storage,
)
from laketier_localfile.layout import (
    IN_PROGRESS,
    MANIFESTS,
    SUPERSEDED,
    attempt_of_staged,
    final_path,
    staged_path,
)
from laketier_localfile.log import ManifestLog
from laketier_localfile.manifest import FileEntry, Manifest
from laketier_localfile.parquet import footer_digest, stats_from_text
from laketier_localfile.results import odd_claim
from laketier_localfile.rollup import files_at, find_commit
from laketier_localfile.settle import finish

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalFileState(TableState):
    """The table at one manifest. All of its files are in place where `LocalFileCommitter.open` gave it."""

    manifests: ManifestLog
    head: Manifest
    metadata: TableDescriptor

    @classmethod
    def at(cls, location: Path) -> LocalFileState:
        """The newest, moving no file. Raises as `ManifestLog.head`."""
        manifests = ManifestLog.open(location)
        head, _ = manifests.head()
        return cls(manifests, head, manifests.metadata(head))

    @property
    def table_uuid(self) -> str:
        return self.head.table_uuid

    @property
    def schema_fingerprint(self) -> str:
        return schema_fingerprint(self.metadata.schema)

    @property
    def spec_id(self) -> int:
        return 0

    @property
    def snapshot_id(self) -> int:
        return self.head.number

    def watermark(self, pipeline: str) -> Watermark | None:
        """Read from the newest manifest, which holds those of all pipelines."""
        return self.head.watermark(pipeline)

    def pipelines(self) -> Sequence[str]:
        return list(self.head.watermarks)

    def landed(self, commit_id: str) -> bool:
        """Looks at the whole history, newest first: rollups make that few files."""
        return find_commit(self.manifests, self.head.number, commit_id) is not None


class LocalFileCommitter(LakeCommitter[WriteResult]):
    """One attempt. Needs write access to the table's folder."""

    def __init__(self, location: Path, context: CommitterInitContext) -> None:
        self._location = location
        self._context = context

    def open(self) -> LocalFileState:
        return open_finished(self._location)

    def publish(
        self, state: TableState, results: Sequence[WriteResult], watermark: Watermark | None
    ) -> LakeCommitResult:
        assert isinstance(state, LocalFileState)
        added = self._entries(state, results)
        removed = self._removed(state, results)
        number = state.head.number + 1
        watermarks = dict(state.head.watermarks)
        if watermark is not None:
            watermarks[watermark.token.pipeline] = watermark.carried_by(number).to_json()
        manifest = following(
            state.head,
            commit_id=self._context.commit_id,
            kind=self._context.mode.value,
            added=added,
            removed=removed,
            watermarks=watermarks,
        )
        failpoint("publish.before_manifest")
        published = state.manifests.append(manifest)
        failpoint("publish.after_manifest_before_renames")
        finish(state.manifests, published)
        return LakeCommitResult(
            snapshot_id=number,
            rows=sum(entry.rows for entry in added),
            files=len(added),
            bytes=sum(entry.bytes for entry in added),
        )

    def storage_time(self) -> int:
        return time_of_storage(pafs.LocalFileSystem(), str(self._location))

    def discard(self, results: Sequence[WriteResult]) -> None:
        # Only the newest commit can still have staged files. Whoever calls this is certain that it is not these; a
        # look costs little, and the mistake would cost rows.
        try:
            head, _ = ManifestLog.open(self._location).head()
        except TableNotFound:
            return
        except (LaketierError, OSError):
            log.warning("nothing was deleted, as the table can't be read", exc_info=True)
            return
        published = {staged_path(entry.path) for entry in head.added}
        own = own_paths(results, attempt_of_staged, where=str(self._location))
        for path in published.intersection(own):
            log.error("%s was to be discarded, and is published: kept", path)
        remove(table_folder(self._location), [path for path in own if path not in published])

    def _entries(self, state: LocalFileState, results: Sequence[WriteResult]) -> tuple[FileEntry, ...]:
        files = [file for result in results for file in result.files]
        where = str(self._location)
        check_staged(table_folder(self._location), results, attempt_of=attempt_of_staged, where=where)
        for file in files:
            why = odd_claim(file, state.metadata)
            if why is not None:
                raise _replaced(self._location / file.path, why)
            self._refuse_replaced(file)
        folder = LocalFolder(self._location)
        for file in files:
            folder.refuse_links(final_path(file.path, file.partition))
        return tuple(
            FileEntry(
                path=final_path(file.path, file.partition),
                rows=file.rows,
                bytes=file.bytes,
                footer=file.payload["footer"],
                schema=state.head.metadata_at,
                partition=tuple(file.partition),
                bucket=file.bucket,
                stats=stats_from_text(file.payload["stats"]),
            )
            for file in files
        )

    def _removed(self, state: LocalFileState, results: Sequence[WriteResult]) -> tuple[str, ...]:
        if not any(result.replaced for result in results):
            return ()
        live = {entry.path for entry in files_at(state.manifests, state.head.number)}
        return replaced_files(results, live, where=str(self._location))

    def _refuse_replaced(self, file: StagedFile) -> None:
        """The size is that of what was written. So is the footer, or no reader would take the file for it."""
        path = self._location / file.path
        try:
            with os.fdopen(LocalFolder(self._location).open(file.path), "rb") as data:
                found = footer_digest(data, file.bytes)
        except (FileNotFoundError, CorruptTable) as error:
            raise _replaced(path, str(error)) from error
        if found != file.payload.get("footer"):
            raise _replaced(path, "its footer is another one")


def _replaced(path: Path, why: str) -> StagedFileLost:
    return StagedFileLost(
        "a staged file is not the one that its writer left; nothing was published",
        where=str(path),
        why=why,
        fix="Find out what writes into the table's folder, and run the round again: it will be staged anew.",
    )


def table_folder(location: Path) -> TableFolder:
    """The table's files, for what compares and deletes them."""
    return TableFolder(pafs.LocalFileSystem(), str(location))


def open_finished(location: Path) -> LocalFileState:
    """The table, after finishing what a crashed commit left. Raises `TableNotFound`, `CorruptTable`, `UnsafeTable`,
    and `RolledBack`."""
    manifests = ManifestLog.open(location)
    refuse_several_devices(location)
    head, finished = manifests.head()
    if not finished:
        manifests.sync_names()
        finish(manifests, head)
    return LocalFileState(manifests, head, manifests.metadata(head))


def following(head: Manifest, *, commit_id: str, kind: str, **changes: object) -> Manifest:
    """The manifest after ``head``. Times never go back, whatever the clock does."""
    return replace(
        Manifest(
            table_uuid=head.table_uuid,
            number=head.number + 1,
            previous=head.sha256,
            at=max(host_time(), head.at + 1),
            commit_id=commit_id,
            kind=kind,
            metadata_at=head.metadata_at,
            watermarks=head.watermarks,
        ),
        **changes,  # type: ignore[arg-type]
    )


def refuse_several_devices(location: Path) -> None:
    """Raise `UnsafeTable` when the table's own folders are on several file systems: files could not be moved."""
    device = os.stat(location).st_dev
    for name in (IN_PROGRESS, SUPERSEDED, MANIFESTS):
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
