"""A lake format in memory, whose atomic step can be made to fail before or after its effect. It keeps ids, and whole
rows where a table has a primary key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from laketier.bucketing import assigner_for
from laketier.kit import conform
from laketier.spi import (
    BucketSpec,
    CommitError,
    CommitterInitContext,
    Conflict,
    LakeCommitResult,
    LakeCommitter,
    LakeSource,
    LakeSplit,
    LakeTieringFactory,
    LakeWriter,
    ScanPlan,
    ScanRequest,
    SnapshotNotFound,
    StagedFile,
    TableDescriptor,
    TableInfo,
    TablePath,
    TableState,
    Watermark,
    WriteMode,
    WriteResult,
    WriterInitContext,
    host_time,
)

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@dataclass
class MemoryTable:
    """The shared storage. ``before`` and ``after`` hold what the coming attempts raise, None for nothing, ``opens``,
    ``looks`` and ``histories`` what opening, reading a watermark and `landed` raise; ``rivals`` are called between an
    `open` and the `publish` against it. ``time`` says what time it is by the storage, None where it can't be asked.
    ``lists``: it can list its pipelines."""

    uuid: str = "uuid-1"
    spec_id: int = 0
    schema: pa.Schema = SCHEMA
    primary_key: tuple[str, ...] = ()
    buckets: BucketSpec | None = None
    version: int = 0
    files: dict[str, list[int]] = field(default_factory=dict)
    staged: dict[str, list[int]] = field(default_factory=dict)
    contents: dict[str, pa.Table] = field(default_factory=dict)
    in_bucket: dict[str, int] = field(default_factory=dict)
    snapshots: dict[int, tuple[str, ...]] = field(default_factory=dict)
    watermarks: dict[str, Watermark] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)
    before: list[BaseException | None] = field(default_factory=list)
    after: list[BaseException | None] = field(default_factory=list)
    rivals: list[Callable[[], None] | None] = field(default_factory=list)
    opens: list[BaseException | None] = field(default_factory=list)
    looks: list[BaseException | None] = field(default_factory=list)
    histories: list[BaseException | None] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    time: Callable[[], int] | None = host_time
    lists: bool = True

    @property
    def state(self) -> MemoryState:
        """As it is now."""
        info = self.info
        return MemoryState(
            self,
            self.version,
            info.table_uuid,
            info.schema_fingerprint,
            info.spec_id,
            dict(self.watermarks),
            tuple(self.commits),
        )

    @property
    def info(self) -> TableInfo:
        descriptor = TableDescriptor(self.schema, buckets=self.buckets, primary_key=self.primary_key)
        return TableInfo(TablePath("db", "t"), descriptor, self.uuid, "memory:", spec_id=self.spec_id)

    @property
    def rows(self) -> list[int]:
        return sorted(row for rows in self.files.values() for row in rows)

    def stage(self, *rows: int, attempt: str = "a") -> WriteResult:
        name = f"{attempt}-{len(self.staged)}"
        self.staged[name] = list(rows)
        return WriteResult.of(self.info, attempt, (StagedFile(name, len(rows), 8 * len(rows)),))

    def stage_rows(self, rows: pa.Table, attempt: str) -> WriteResult:
        """One file for each bucket."""
        parts = [(-1, rows)]
        if self.buckets is not None:
            [batch] = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
            assigned = assigner_for(self.info.descriptor).assign(batch)
            parts = [(n, rows.filter(pc.equal(assigned, n))) for n in sorted(set(assigned.to_pylist()))]
        files = []
        for bucket, part in parts:
            staged = self.stage(*part["id"].to_pylist(), attempt=attempt).files[0]
            self.contents[staged.path], self.in_bucket[staged.path] = part, bucket
            files.append(staged)
        return WriteResult.of(self.info, attempt, tuple(files))

    def read(self) -> pa.Table:
        """All rows, of a table with a primary key."""
        return pa.concat_tables([self.schema.empty_table(), *(self.contents[name] for name in self.files)])

    def committer(self, commit_id: str = "c1", mode: WriteMode = WriteMode.APPEND) -> MemoryCommitter:
        return MemoryCommitter(self, CommitterInitContext(commit_id=commit_id, mode=mode))


@dataclass(frozen=True)
class MemoryState(TableState):
    table: MemoryTable
    version: int
    uuid: str
    fingerprint: str
    spec: int
    watermarks: dict[str, Watermark]
    commits: tuple[str, ...]

    @property
    def table_uuid(self) -> str:
        return self.uuid

    @property
    def schema_fingerprint(self) -> str:
        return self.fingerprint

    @property
    def spec_id(self) -> int:
        return self.spec

    @property
    def snapshot_id(self) -> int | None:
        return self.version or None

    def watermark(self, pipeline: str) -> Watermark | None:
        _raise_next(self.table.looks)
        return self.watermarks.get(pipeline)

    def pipelines(self) -> Sequence[str] | None:
        return list(self.watermarks) if self.table.lists else None

    def landed(self, commit_id: str) -> bool:
        _raise_next(self.table.histories)
        return commit_id in self.commits


class MemoryCommitter(LakeCommitter[WriteResult]):
    def __init__(self, table: MemoryTable, context: CommitterInitContext) -> None:
        self.table = table
        self.context = context

    def open(self) -> TableState:
        table = self.table
        table.calls.append("open")
        _raise_next(table.opens)
        return table.state

    def publish(
        self, state: TableState, results: Sequence[WriteResult], watermark: Watermark | None
    ) -> LakeCommitResult:
        assert isinstance(state, MemoryState)
        table = self.table
        table.calls.append("publish")
        if table.before and table.before[0] is not None:
            table.calls.append("timeout")
        _raise_next(table.before)
        rival = table.rivals.pop(0) if table.rivals else None
        if rival is not None:
            rival()
        if state.version != table.version:
            raise Conflict(f"the table is at {table.version}, the state is of {state.version}")
        commit = self.land(results, watermark)
        _raise_next(table.after)
        return commit

    def land(self, results: Sequence[WriteResult], watermark: Watermark | None) -> LakeCommitResult:
        """The effect alone."""
        table = self.table
        if self.context.mode is WriteMode.OVERWRITE:
            table.files.clear()
        for name in (name for result in results for name in result.replaced):
            assert self.context.mode is WriteMode.UPSERT
            if table.files.pop(name, None) is None:
                raise CommitError(f"{name} is not in the table")
        names = [file.path for result in results for file in result.files]
        for name in names:
            assert name not in table.files, f"{name} is published twice"
            table.files[name] = table.staged[name]
        table.version += 1
        table.snapshots[table.version] = tuple(table.files)
        table.commits.append(self.context.commit_id)
        if watermark is not None:
            table.watermarks[watermark.token.pipeline] = watermark.carried_by(table.version)
        rows = sum(result.rows for result in results)
        return LakeCommitResult(snapshot_id=table.version, rows=rows, files=len(names), bytes=8 * rows)

    def discard(self, results: Sequence[WriteResult]) -> None:
        self.table.calls.append("discard")
        for result in results:
            for file in result.files:
                self.table.discarded.append(file.path)

    def storage_time(self) -> int | None:
        return None if self.table.time is None else self.table.time()

    def close(self) -> None:
        self.table.calls.append("close")


class MemoryWriter(LakeWriter[WriteResult]):
    def __init__(self, table: MemoryTable, context: WriterInitContext) -> None:
        self.table = table
        self.context = context
        self.rows: list[int] = []
        self.batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        rows = conform(batch, self.table.schema)
        self.rows += rows.column("id").to_pylist()
        self.batches.append(rows)

    def complete(self) -> WriteResult:
        if not self.rows:
            return WriteResult.of(self.table.info, self.context.attempt, ())
        if self.table.primary_key:
            return self.table.stage_rows(pa.Table.from_batches(self.batches), self.context.attempt)
        return self.table.stage(*self.rows, attempt=self.context.attempt)

    def abort(self) -> None:
        self.table.calls.append("abort")


class MemoryFactory(LakeTieringFactory[WriteResult]):
    def __init__(self, table: MemoryTable) -> None:
        self.table = table

    def create_writer(self, context: WriterInitContext) -> LakeWriter[WriteResult]:
        return MemoryWriter(self.table, context)

    def create_committer(self, context: CommitterInitContext) -> LakeCommitter[WriteResult]:
        return MemoryCommitter(self.table, context)


@dataclass(frozen=True)
class MemoryFile:
    name: str


@dataclass(frozen=True)
class MemorySource(LakeSource):
    """A split for each file. ``reads`` counts those that were read whole."""

    split_payload: ClassVar[type] = MemoryFile

    table: MemoryTable
    reads: list[str] = field(default_factory=list)

    def plan(self, request: ScanRequest) -> ScanPlan:
        version = self.table.version if request.snapshot_id is None else request.snapshot_id
        if not version:
            return ScanPlan(snapshot_id=None, schema=self.table.schema, splits=())
        if version not in self.table.snapshots:
            raise SnapshotNotFound(f"there is no version {version}")
        splits = tuple(
            LakeSplit(index=index, bucket=self.table.in_bucket[name], files=(name,), payload=MemoryFile(name))
            for index, name in enumerate(self.table.snapshots[version])
        )
        return ScanPlan(snapshot_id=version, schema=self.table.schema, splits=splits)

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        name = split.payload.name
        if schema.names == self.table.schema.names:
            self.reads.append(name)
        yield from self.table.contents[name].select(schema.names).to_batches(max_chunksize=2)


def written_against(result: WriteResult, **other: object) -> WriteResult:
    """The result as if it had been written against another table."""
    return replace(result, **other)  # type: ignore[arg-type]


def _raise_next(errors: list[BaseException | None]) -> None:
    error = errors.pop(0) if errors else None
    if error is not None:
        raise error
