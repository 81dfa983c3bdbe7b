"""A warehouse under test, and what the tests do with its tables: always through the SPI and the real protocol."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from laketier.config import parse_options
from laketier.kit.views import only
from laketier.registry import load_format
from laketier.spi import (
    CommitterInitContext,
    Feature,
    Features,
    IncompatibleData,
    LakeChanges,
    LakeFeed,
    LakeHistory,
    LakeSource,
    LakeSplit,
    LakeStorage,
    LakeStorageConfig,
    LakeStoragePlugin,
    LakeTieringFactory,
    Predicate,
    ScanPlan,
    ScanRequest,
    SnapshotNotFound,
    SourceRange,
    TableDescriptor,
    TableInfo,
    TablePath,
    Token,
    Watermark,
    WriteMode,
    WriteResult,
    WriterInitContext,
    new_attempt_id,
    support_of,
    to_arrow,
    unpack,
)
from laketier.tiering import RetryPolicy, RoundResult, TieringRound, write_task
from laketier_conformance.expect import columns, ends_for_good
from laketier_conformance.heard import heard

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("value", pa.float64())])
QUICK = RetryPolicy(first_wait_seconds=0.001, longest_wait_seconds=0.05)
_PLANS = 100
"""So many commits may come between a plan and its read."""
MOST_BATCHES = 20_000
"""Of one split, where a test writes fewer rows. A reader that finds its first page again behind each page would read
for ever."""


def ids_of(epoch: int, split: int = 0, rows: int = 5) -> list[int]:
    """The ids that a split of an epoch holds."""
    start = epoch * 10_000 + split * 1_000
    return list(range(start, start + rows))


def name_of(id: int) -> str | None:
    """What a row of `SCHEMA` is called."""
    return None if id % 7 == 3 else f"row {id}"


def batch(ids: Sequence[int]) -> pa.RecordBatch:
    """Rows of `SCHEMA`: everything follows from the id, and some values are null."""
    names = [name_of(i) for i in ids]
    values = [None if i % 5 == 4 else i / 4 for i in ids]
    return pa.record_batch(
        [pa.array(ids, pa.int64()), pa.array(names, pa.string()), pa.array(values, pa.float64())], schema=SCHEMA
    )


def token(epoch: int, pipeline: str = "p", run: str = "run", fence: int = 0, **more: Any) -> Token:
    """A token with short names for what most tests leave alone."""
    return Token(pipeline, run, epoch, fence, **more)


def tick() -> int:
    """A moment that is later than everything before and earlier than everything after, in ms since the epoch."""
    start = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= start + 1:
        pass
    moment = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= moment + 1:
        pass
    return moment


def span(start: int, end: int) -> SourceRange:
    """A source range."""
    return SourceRange(str(start), str(end))


@dataclass(frozen=True)
class Lake:
    """One warehouse. Every `storage` is a fresh handle, as another process would open it."""

    format: str
    location: str
    options: Mapping[str, str] = field(repr=False)
    """They may have a key of the user's store, and pytest prints what a test was given."""
    dates_by: timedelta = field(default=timedelta(milliseconds=1), kw_only=True)
    """How finely the storage dates files."""

    @property
    def plugin(self) -> LakeStoragePlugin:
        """The plugin under test."""
        return load_format(self.format)

    def declares(self, *features: Feature) -> bool:
        """Whether the format declares each of these in full."""
        declared = self.plugin.features
        return all(support_of(declared, feature).full for feature in features)

    @property
    def storage(self) -> LakeStorage:
        """The warehouse, opened again."""
        return self.open(self.location)

    def open(self, location: str) -> LakeStorage:
        """Any warehouse, with this one's options."""
        plugin = self.plugin
        prefix = f"lake.{self.format}."
        options = parse_options(plugin.options_type, self.options, prefix=prefix, origin="the conformance suite")
        return plugin.create_storage(LakeStorageConfig(location, options))

    def create(self, schema: pa.Schema = SCHEMA, name: str = "db.t", **descriptor: Any) -> Table:
        """A new table, or the one that is there already. Nobody else is there, and nothing fails."""
        with ends_for_good("a table is created, and nobody else is there"):
            return self.create_amid_faults(schema, name, **descriptor)

    def create_amid_faults(self, schema: pa.Schema = SCHEMA, name: str = "db.t", **descriptor: Any) -> Table:
        """The same where a store or a process fails, or others come between: another try may end in another way."""
        path = TablePath.parse(name)
        self.storage.catalog().create_table(path, TableDescriptor(schema, **descriptor))
        return Table(self, path)

    def table(self, name: str) -> Table:
        """A table that is there."""
        return Table(self, TablePath.parse(name))

    def let_age(self) -> None:
        """Wait until what was written before is older than now by the storage's dates; its clock may lag behind by
        some milliseconds."""
        time.sleep(0.02 + self.dates_by.total_seconds())

    def files(self) -> set[str]:
        """All files below the warehouse; nothing where it is no local folder."""
        root = Path(self.location)
        return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} if root.is_dir() else set()


Opened = Callable[[Path], AbstractContextManager[Lake]]
"""Opens an empty warehouse in a folder, for as long as the block."""


@dataclass(frozen=True)
class Table:
    """One table."""

    lake: Lake
    path: TablePath

    @property
    def info(self) -> TableInfo:
        """As it is now."""
        return self.lake.storage.catalog().load_table(self.path)

    @property
    def factory(self) -> LakeTieringFactory[Any]:
        """For one round."""
        storage = self.lake.storage
        return storage.tiering_factory(storage.catalog().load_table(self.path))

    @property
    def source(self) -> LakeSource:
        """To read it."""
        storage = self.lake.storage
        return storage.source(storage.catalog().load_table(self.path))

    @property
    def history(self) -> LakeHistory:
        """Its snapshots."""
        return self.lake.storage.history(self.info)

    @property
    def changes(self) -> LakeChanges:
        """What its commits appended."""
        return self.lake.storage.changes(self.info)

    @property
    def latest(self) -> int:
        """The version after the newest commit, from which the next changes are read."""
        return self.changes.versions().latest

    @property
    def feed(self) -> LakeFeed:
        """What its commits did to rows."""
        return self.lake.storage.feed(self.info)

    # -- writing ----------------------------------------------------------------------------------------------------

    def append(self, epoch: int, *tasks: Sequence[int], **fields: Any) -> RoundResult:
        """A whole round of an epoch: one task per list of ids; without any, one task with the epoch's own ids."""
        return self.round(token(epoch, **fields), tasks or (ids_of(epoch),))

    def round(
        self, token: Token | None, tasks: Iterable[Sequence[int]], mode: WriteMode = WriteMode.APPEND
    ) -> RoundResult:
        """A whole round, from a fresh handle."""
        factory = self.factory
        tiering = TieringRound(factory, token=token, mode=mode, policy=QUICK)
        tiering.begin()
        return tiering.commit_messages([self.stage(ids, index, factory, mode) for index, ids in enumerate(tasks)])

    def stage(
        self,
        ids: Sequence[int],
        index: int = 0,
        factory: LakeTieringFactory[Any] | None = None,
        mode: WriteMode = WriteMode.APPEND,
        attempt: str | None = None,
    ) -> bytes:
        """One task: its message."""
        context = WriterInitContext(attempt=attempt or new_attempt_id(), split_index=index, mode=mode)
        return write_task(factory or self.factory, [batch(ids)] if ids else [], context)

    def staged(self, ids: Sequence[int], index: int = 0) -> WriteResult:
        """One task: its result."""
        factory = self.factory
        result: WriteResult = unpack(factory.write_result_serializer, self.stage(ids, index, factory))
        return result

    def stage_arrow(self, batches: Iterable[pa.RecordBatch], **context: Any) -> WriteResult:
        """One task with batches of any schema."""
        factory = self.factory
        message = write_task(factory, batches, WriterInitContext(attempt=new_attempt_id(), **context))
        result: WriteResult = unpack(factory.write_result_serializer, message)
        return result

    def takes(self, rows: pa.RecordBatch) -> bool:
        """Whether a task takes the rows. What it refuses is no error: text of many databases has no NUL."""
        try:
            self.stage_arrow([rows])
        except IncompatibleData:
            return False
        return True

    def publish_arrow(self, batches: Iterable[pa.RecordBatch], token: Token | None = None) -> RoundResult:
        """A round of one task with batches of any schema."""
        return TieringRound(self.factory, token=token, policy=QUICK).commit([self.stage_arrow(batches)])

    def commit(self, results: Sequence[WriteResult], token: Token | None, **more: Any) -> RoundResult:
        """Publish what was staged before."""
        return TieringRound(self.factory, token=token, policy=QUICK, **more).commit(results)

    def committer(self, mode: WriteMode = WriteMode.APPEND, commit_id: str = "") -> Any:
        """A bare committer: one attempt, without the loop."""
        context = CommitterInitContext(commit_id=commit_id or new_attempt_id(), mode=mode)
        return self.factory.create_committer(context)

    # -- reading ----------------------------------------------------------------------------------------------------

    def watermark(self, pipeline: str = "p") -> Watermark | None:
        """The stored watermark."""
        committer = self.committer()
        try:
            watermark: Watermark | None = committer.open().watermark(pipeline)
        finally:
            committer.close()
        return watermark

    def read(self, **request: Any) -> pa.Table:
        """All rows of a scan, as a reader gets them: the remaining filters applied, the limit kept. Planned again when
        a commit came between, for a format that keeps one state of its rows."""
        for _ in range(_PLANS):
            source = self.source
            plan = source.plan(ScanRequest(**request))
            rows = read_pinned(source, plan, self.lake.plugin.features)
            if rows is not None:
                return finished(rows, plan, request.get("limit"))
        source = self.source
        plan = source.plan(ScanRequest(**request))
        return finished(read_plan(source, plan), plan, request.get("limit"))

    @property
    def ids(self) -> list[int]:
        """The ids of all rows, sorted; a double is there twice."""
        return sorted(self.read(columns=("id",))["id"].to_pylist())


class SharedTable(Table):
    """A table that several tests read, in whatever order they come: none of them writes to it."""

    @property
    def factory(self) -> NoReturn:
        raise AssertionError(f"several tests read {self.path}: a test that writes makes a table of its own")


def read_plan(source: LakeSource, plan: ScanPlan, most: int = MOST_BATCHES) -> pa.Table:
    """What the splits of a plan hold, in their order. ``most`` batches of a split: a cursor may give a row in each."""
    batches = [rows for split in plan.splits for rows in read_split(source, split, plan.schema, most)]
    for rows in batches:
        assert rows.schema.equals(plan.schema), (
            "a batch that `LakeSource.read` gives has the schema that it was asked for: expected the columns "
            f"{columns(plan.schema)}, found {columns(rows.schema)}"
        )
    return pa.Table.from_batches(batches, schema=plan.schema)


def read_split(
    source: LakeSource, split: LakeSplit, schema: pa.Schema, most: int = MOST_BATCHES
) -> Iterator[pa.RecordBatch]:
    """The batches of a split, one after the other. A reader that never ends fails the test, and does not hold it up."""
    for number, rows in enumerate(source.read(split, schema)):
        assert number < most, (
            f"a split is read to its end: expected {most} batches at most, as its table has fewer rows, and more "
            f"came, the last one of {rows.num_rows} rows. What follows a page is looked for behind it, with each filter"
        )
        heard()
        yield rows


@contextmanager
def overtaken(features: Features) -> Iterator[None]:
    """A plan is read that is not the newest any more. A format without time travel may refuse it: it keeps one state of
    its rows."""
    try:
        yield
    except SnapshotNotFound:
        if support_of(features, Feature.TIME_TRAVEL).full:
            raise


def read_pinned(source: LakeSource, plan: ScanPlan, features: Features) -> pa.Table | None:
    """What a plan that is not the newest any more reads. None if it is refused, and may be."""
    with overtaken(features):
        return read_plan(source, plan)
    return None


def finished(rows: pa.Table, plan: ScanPlan, limit: int | None) -> pa.Table:
    """What a reader does after the source: the filters that remain, and the limit."""
    remaining: Sequence[Predicate] = plan.remaining
    for predicate in remaining:
        rows = only(rows, to_arrow(predicate, rows.schema))
    return rows if limit is None else rows.slice(0, limit)
