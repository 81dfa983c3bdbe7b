"""The handle to one table of files and manifests: what its author says of it, and its state at the newest manifest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from laketier.kit.failpoints import failpoint
from laketier.kit.local_store import folder_of, store_of
from laketier.kit.manifests.chain import back_from, with_columns_named
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.folding import FoldSettings
from laketier.kit.manifests.layout import ManifestLayout
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import REBUILT, Manifest
from laketier.kit.manifests.rollup import find_commit, write_rollups
from laketier.kit.staged import check_staged
from laketier.kit.table_folder import TableFolder
from laketier.kit.table_store import TableStore
from laketier.spi.committer import TableState
from laketier.spi.errors import RolledBack
from laketier.spi.features import Feature, Features, require
from laketier.spi.maintenance import COLLECTOR
from laketier.spi.schema import schema_fingerprint
from laketier.spi.table import TableDescriptor, TableInfo, Transform
from laketier.spi.token import Watermark
from laketier.spi.writer import StagedFile, WriteResult


@dataclass(frozen=True)
class ManifestTable(ABC):
    """One table of a format of data files and manifests, in a folder of a local or mounted file system, or in another
    `TableStore` if the format has writers and readers for it.

    An author derives it, sets ``layout`` and ``features``, and says in `check_types` what a file can hold. The other
    methods under "what a format may change" have defaults. `ManifestCatalog`, `ManifestCommitter`, `ManifestSource` and
    `ManifestMaintenance` do the rest: the author adds a writer, a reader and a table of types.

    A commit is manifest N+1, created under a name that did not exist. So of two writers that saw the same table one
    wins, and data, watermarks and schema change in one step. Names are never given back; manifests stay for ever.
    Picklable, and plain data: ``place`` is the table's folder on a disk, or another `TableStore`.
    """

    place: Path | TableStore
    layout: ClassVar[ManifestLayout]
    features: ClassVar[Features]

    # -- what a format has to say ---------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def check_types(cls, schema: pa.Schema) -> None:
        """Raise `UnsupportedType` for the first column that the format's files can't hold exactly. Driver, when a table
        is created or altered."""

    # -- what a format may change ---------------------------------------------------------------------------------

    @classmethod
    def check_descriptor(cls, descriptor: TableDescriptor) -> None:
        """Refuse a new table's partitions, buckets or key. Driver, before `check_types`. By default what ``features``
        leave out raises `FeatureNotSupported`. Transforms of partition columns are refused before, unless ``features``
        have them."""
        if descriptor.partition_by:
            cls.require(Feature.PARTITIONING)
        if descriptor.buckets is not None:
            cls.require(Feature.BUCKETING)
        if descriptor.primary_key:
            cls.require(Feature.UPSERT)

    def check_folder(self) -> None:  # noqa: B027 - optional
        """Refuse a folder that the format can't work in. Driver, each time that the table is opened to be written."""

    def check_staged(self, state: ManifestState, results: Sequence[WriteResult]) -> None:
        """The last look at files before a manifest names them. Driver, in `publish`, once. By default each has to be
        there, with the size that its writer wrote, and of its result's own attempt. Raises `StagedFileLost` and
        `OutsideTable`. A format that can tell more of a file (a checksum) calls this and looks further."""
        check_staged(self.store, results, attempt_of=self.layout.attempt_of, where=self.store.root)

    def entry(self, state: ManifestState, file: StagedFile) -> FileEntry:
        """Make the manifest's entry of a file that `check_staged` passed. Driver. By default the payload of the file
        is the entry's details, and the file stays where it was staged."""
        return FileEntry(
            path=file.path,
            rows=file.rows,
            bytes=file.bytes,
            schema=state.head.metadata_at,
            partition=tuple(file.partition),
            bucket=file.bucket,
            details=dict(file.payload),
            transformed=any(part.transform is not Transform.IDENTITY for part in state.metadata.partition_by),
        )

    def named(self, number: int, added: Sequence[FileEntry]) -> Sequence[FileEntry]:
        """Give the files of commit ``number`` the names that they keep. Driver, in `publish`, after `entry`, and again
        with a higher number after a conflict. `ManifestLayout.staged_as` finds the staged file by the new name. By
        default the names of `entry` stay."""
        return added

    def settle(self, manifests: ManifestLog, head: Manifest) -> None:  # noqa: B027 - optional
        """Do what is part of the commit ``head`` and follows from it, such as giving files the names that other readers
        look for. Driver, after the manifest is published and again by whoever opens the table after a crash; so it is
        idempotent, and safe beside another process that does the same. Whatever it raises, the commit has landed. By
        default there is nothing to do."""

    @property
    def folding(self) -> FoldSettings | None:
        """When a commit also writes small files of earlier commits as one. None for never, which is the default. A
        format with it writes `rewrite`."""
        return None

    def rewrite(self, state: ManifestState, files: Sequence[FileEntry]) -> Sequence[StagedFile]:
        """Write the rows of ``files``, which are live in ``state`` and of one partition and bucket, as one file, or as
        few as the format's sizes allow, with the columns of ``state``. Driver, in `publish`, before anything is
        published; the committer deletes what was staged if it is not. Returns the files, staged durably. What it raises
        is logged, and the files stay as they are."""
        raise NotImplementedError

    def check_open(self, entries: Sequence[FileEntry]) -> None:  # noqa: B027 - optional
        """Refuse a table that lost what it recorded of files that are still open. Driver, each time that the table is
        opened to be written. Raises `CorruptTable` for one that is gone, or shorter than was recorded."""

    def finish_open(self, state: ManifestState, entry: FileEntry) -> StagedFile:
        """Finish a file that another process left open: write exactly what ``entry`` recorded of it, and its end, as
        another file, which is staged durably. Driver, in `publish`, before anything is published. Never writes into the
        file itself: whoever opened it may wake up, and go on. Formats without such files have none to finish."""
        raise NotImplementedError

    # -- what every format gets -----------------------------------------------------------------------------------

    @classmethod
    def require(cls, feature: Feature, *, fix: str | None = None) -> None:
        """Raise `FeatureNotSupported` unless the format has ``feature``."""
        require(cls.layout.format, cls.features, feature, fix=fix)

    @property
    def store(self) -> TableStore:
        """The table's files, wherever they are."""
        return store_of(self.place)

    @property
    def location(self) -> Path:
        """The table's folder. Raises `FeatureNotSupported` where it is on no disk, as `folder` does."""
        return folder_of(self.store)

    @property
    def folder(self) -> TableFolder:
        """The table's files on a disk, for what compares and deletes them."""
        return TableFolder.at(self.location)

    def manifests(self) -> ManifestLog:
        """The table's log, which keeps nothing in memory. Raises `TableNotFound`, `CorruptTable`, `IncompatibleTable`
        and `OutsideTable`."""
        return ManifestLog.open(self.place, self.layout)

    def open(self) -> ManifestState:
        """A fresh look at the table, after finishing what a crashed commit left. Driver; writes where there is
        something to finish. Raises as `manifests` and `check_folder`, and `RolledBack` where manifests are gone."""
        manifests = self.manifests()
        self.check_folder()
        head, finished = manifests.head()
        if not finished:
            manifests.sync_names()
            self.finish(manifests, head)
        self.check_open(head.open_files)
        head = with_columns_named(manifests, head)
        return ManifestState(manifests, head, manifests.metadata(head))

    def state(self, info: TableInfo) -> ManifestState:
        """For `LakeStorage.state`: the handle of ``info``, or where it has none the newest manifest, changing nothing.
        Raises as `manifests`, and `RolledBack`."""
        if isinstance(info.handle, ManifestState):
            return info.handle
        manifests = self.manifests()
        head, _ = manifests.head()
        return ManifestState(manifests, head, manifests.metadata(head))

    def finish(self, manifests: ManifestLog, head: Manifest) -> None:
        """Roll the newest commit forward: `settle`, the rollups, the head file. Driver. Idempotent. Raises what
        `settle` does; the commit has landed all the same."""
        self.settle(manifests, head)
        failpoint("publish.after_renames_before_head")
        write_rollups(manifests, head.number)
        manifests.note_head(head)

    def published(self, manifests: ManifestLog, head: Manifest) -> set[str]:
        """The paths of staged files that a snapshot needs. Driver. Where files are moved, only the newest commit can
        still have some, as none follows an unfinished one, and those that are open are where they were staged; where
        files stay, this reads all manifests."""
        if self.layout.staged_as is not None:
            # What it takes away may have been open, and lies where it was staged until the commit is finished.
            _, *before = back_from(manifests, head, down_to=head.number - 1 if head.resets else head.number)
            were_open = (entry for manifest in before for entry in manifest.open_files)
            paths = [*(entry.path for entry in (*head.added, *head.open, *were_open)), *head.removed]
            return {self.layout.staged_path(path) for path in paths}
        return {entry.path for manifest in back_from(manifests, head, down_to=0) for entry in manifest.added}


@dataclass(frozen=True)
class ManifestState(TableState):
    """The table at one manifest. Its commit is finished where `ManifestTable.open` gave it. ``metadata``: the table's
    description as of it."""

    manifests: ManifestLog
    head: Manifest
    metadata: TableDescriptor

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
        """Read from the newest manifest, which holds those of all pipelines. Raises `RolledBack` for one that a rebuilt
        table does not know: it may have run before, and its rows may be there."""
        found = self.head.watermark(pipeline)
        if found is None and self.head.origin == REBUILT and pipeline != COLLECTOR:
            raise RolledBack(
                f"it is not known which rows of pipeline {pipeline!r} are in the table",
                where=self.manifests.store.root,
                why="the table's manifests were lost with all watermarks, and made again from its files",
                fix="Find out the last epoch whose rows are there, and run `laketier pipeline adopt`. For a pipeline "
                "that never wrote to this table, run `laketier pipeline forget`.",
            )
        return found

    def pipelines(self) -> Sequence[str]:
        return list(self.head.watermarks)

    def landed(self, commit_id: str) -> bool:
        """Looks at the whole history, newest first: rollups make that few files."""
        return find_commit(self.manifests, self.head.number, commit_id, self.head) is not None
