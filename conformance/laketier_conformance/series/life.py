"""One table of a series, beside what it has to hold: rows, snapshots, watermarks, and what each commit appended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from laketier.spi import (
    Feature,
    LakeSource,
    LakeStorage,
    LakeTieringFactory,
    ScanRequest,
    TableInfo,
    Token,
    WriteMode,
    WriteResult,
    WriterInitContext,
    new_attempt_id,
    unpack,
)
from laketier.tiering import RoundOutcome, TieringRound, write_task
from laketier_conformance.expect import expect
from laketier_conformance.harness import Harness
from laketier_conformance.lake import QUICK, Lake, Table, finished, read_plan, token
from laketier_conformance.series.model import Row, State
from laketier_conformance.series.notes import MOVED, Draw, Landed, Plan, Stretch, Then
from laketier_conformance.series.shapes import Shape

_WIDE = 1 << 40
"""What values of a widened column begin with."""


class Kept(Lake):
    """A warehouse that is opened once, as by a driver that lives long."""

    @cached_property
    def storage(self) -> LakeStorage:
        """Always the same."""
        return self.open(self.location)


@dataclass
class Life:
    """``done``: what was done so far, in words."""

    lake: Lake
    harness: Harness
    shape: Shape
    name: str
    done: list[str] = field(default_factory=list)
    through: Lake = field(init=False)
    """How the next step opens the warehouse."""

    def __post_init__(self) -> None:
        self.fresh = self.through = self.lake
        self.seen: tuple[LakeStorage, TableInfo] | None = None
        self.kept = Kept(self.lake.format, self.lake.location, self.lake.options, dates_by=self.lake.dates_by)
        self.make()

    def make(self) -> None:
        """The table, new and empty."""
        table = self.shape.create(self.through, self.name)
        self.now, self.gone = State.of(self.shape.schema), set[int]()
        self.former: dict[int, Row] = {}
        self.past: list[Then] = []
        self.log: list[Stretch] = []
        self.marks: dict[str, tuple[Token, str, int]] = {}
        self.commits: list[Landed] = []
        self.plans: list[Plan] = []
        self.abandoned: set[str] = set()
        self.properties: dict[str, str] = {}
        self.factory: LakeTieringFactory[Any] | None = None
        self.wide, self.feeds, self.versions = False, False, dict[str, str]()
        if self.shape.feeds and self.lake.declares(Feature.CHANGE_FEED):
            if self.harness.keep_feed is not None:
                self.harness.keep_feed(self.through.storage, table.info)
            self.feeds = True
        self.latest = table.latest if self.follows else 0
        self.begun = self.latest
        self.note(MOVED)

    # -- the table --------------------------------------------------------------------------------------------------

    @property
    def table(self) -> Table:
        """As the step opens it."""
        return Table(self.through, self._path)

    @property
    def _path(self) -> Any:
        return self.lake.table(self.name).path

    @property
    def follows(self) -> bool:
        """Whether it can be read as a log."""
        return self.lake.declares(Feature.INCREMENTAL_READ)

    def opened(self) -> tuple[LakeStorage, TableInfo]:
        """A handle and a description, for several questions."""
        storage = self.through.storage
        return storage, storage.catalog().load_table(self._path)

    @property
    def source(self) -> LakeSource:
        """To look at what the last step left. It was opened after it, once for all looks."""
        storage, info = self.seen or self.opened()
        self.seen = storage, info
        return storage.source(info)

    def read(self, source: LakeSource, **request: Any) -> pa.Table:
        """All rows of a scan, as a reader gets them."""
        plan = source.plan(ScanRequest(**request))
        return finished(read_plan(source, plan), plan, request.get("limit"))

    # -- what is drawn for it ---------------------------------------------------------------------------------------

    def new_rows(self, draw: Draw, count: int) -> list[Row]:
        """Rows of ids that are new, that were deleted once, or, in a table without a key, that are there."""
        gone, there = draw.some(self.gone, count), draw.some(self.now.ids, count)
        ids: list[int] = []
        for number in range(count):
            luck = draw.dice.random()
            if luck < 0.6 and gone:
                ids.append(gone.pop(0))
            elif luck > 0.9 and there and not self.shape.keyed:
                ids.append(there.pop(0))
            else:
                ids.append(100 * draw.at + number)
        rows = [self.row(each, 1_000 * draw.at + number) for number, each in enumerate(ids)]
        # Now and then one comes again as it was, as after a load that is done once more.
        return [self.former.get(row["id"], row) for row in rows] if draw.seed % 4 == 1 else rows

    def row(self, id: int, made: int) -> Row:
        """A row in the columns of now."""
        row = dict(self.shape.row(id, made))
        if self.wide:
            row["made"] = _WIDE + made
        for column in self.now.columns:
            if column.key.startswith("extra"):
                row[column.key] = None if made % 3 == 0 else f"{column.key} {made}"
        return row

    # -- what is done to it -----------------------------------------------------------------------------------------

    def staged(
        self, factory: LakeTieringFactory[Any], rows: Sequence[Row], index: int = 0, mode: WriteMode = WriteMode.APPEND
    ) -> WriteResult:
        """One task."""
        half = len(rows) // 2 or len(rows)
        parts = [part for part in (rows[:half], rows[half:]) if part]
        return self.staged_arrow(factory, [self.batch(part) for part in parts], index, mode)

    def staged_arrow(
        self, factory: LakeTieringFactory[Any], batches: Sequence[pa.RecordBatch], index: int, mode: WriteMode
    ) -> WriteResult:
        """One task, of what Arrow has."""
        context = WriterInitContext(attempt=new_attempt_id(), split_index=index, mode=mode)
        result: WriteResult = unpack(factory.write_result_serializer, write_task(factory, batches, context))
        return result

    def batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        """Rows in the columns of now."""
        return State(self.now.columns, tuple(rows)).table(self.now.schema).combine_chunks().to_batches()[0]

    def next(self, pipeline: str) -> Token:
        """Of the pipeline's next epoch."""
        mark = self.marks.get(pipeline)
        return token(0 if mark is None else mark[0].epoch + 1, pipeline)

    def round(
        self,
        stage: Callable[[LakeTieringFactory[Any]], Sequence[WriteResult]],
        pipeline: str | None = "p",
        mode: WriteMode = WriteMode.APPEND,
        factory: LakeTieringFactory[Any] | None = None,
    ) -> tuple[int, str | None, int | None]:
        """A whole round. Tells its rows, its pipeline and its epoch."""
        mark, commit = None if pipeline is None else self.next(pipeline), new_attempt_id()
        factory = factory or self.table.factory
        tiering = TieringRound(factory, token=mark, mode=mode, policy=QUICK, commit_id=commit)
        tiering.begin()
        results = stage(factory)
        result = tiering.commit(results)
        expect(result.outcome, RoundOutcome.PUBLISHED, "the outcome of a round that is new")
        rows = sum(each.rows for each in results)
        self.commits.append(Landed(commit, True, self.number))
        if mark is not None:
            self.marks[mark.pipeline] = mark, commit, rows
        return rows, pipeline, None if mark is None else mark.epoch

    def set(self, state: State) -> None:
        """What it has to hold from now on."""
        self.gone |= set(self.now.ids)
        self.former |= {row["id"]: row for row in self.now.rows}
        self.gone -= set(state.ids)
        self.now = state

    # -- what is noted of it ----------------------------------------------------------------------------------------

    @property
    def number(self) -> int:
        """Of the step that is under way, from 1."""
        return len(self.done) + 1

    def note(
        self,
        kind: str,
        rows: Sequence[Row] = (),
        by: tuple[int, str | None, int | None] | None = None,
        *,
        brought: bool = True,
    ) -> None:
        """Something was done: which snapshot and which version there are now. ``brought``: whether a row came or went;
        a commit of a watermark alone need not be told as a change."""
        storage, info = self.seen = self.opened()
        snapshot, moves = info.snapshot_id, kind != MOVED and brought
        known = next((then for then in self.past if then.snapshot == snapshot), None)
        if known is not None:
            known.ended = False
            known.later.append(replace(known.state, columns=self.now.columns))
        elif snapshot is not None:
            self.past.append(Then(snapshot, self.now, self.number, by))
        if self.follows:
            latest = storage.changes(info).versions().latest
            if moves:
                assert latest > self.latest, (
                    f"the version after a commit is greater than before it: found {latest} after {self.latest}"
                )
            self.log.append(Stretch(self.latest, latest, kind, tuple(rows), self.now))
            self.latest = latest
        version = storage.catalog().table_version(self._path)
        if version is not None:
            described = repr((info.table_uuid, info.schema_fingerprint, info.descriptor.properties, snapshot))
            same = kind == MOVED or (not brought and self.versions.get(version) == described)
            assert same or version not in self.versions, (
                f"each commit gives a table another version: found {version!r}, which it had before"
            )
            self.versions[version] = described

    def may_have_ended(self, but: int) -> None:
        """An expiry came, that has to leave so many snapshots."""
        for then in self.past[: max(0, len(self.past) - but)]:
            then.ended = True
