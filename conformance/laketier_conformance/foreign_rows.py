"""What is asked of one table that another tool wrote, beside what the tool itself reads of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from laketier.spi import (
    Feature,
    FeatureNotSupported,
    IncompatibleTable,
    Leaf,
    Not,
    Op,
    Predicate,
    ScanRequest,
    UnsafeTable,
    UnsupportedType,
    WriteMode,
)
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance import apart
from laketier_conformance.expect import NotShown, expect, of_rows, refused, told
from laketier_conformance.foreign_tables import READ, ForeignTable
from laketier_conformance.lake import QUICK, Table, finished, read_plan, read_split, token
from laketier_conformance.oracle import rows_for
from laketier_conformance.outside import local_folder

REFUSALS = (FeatureNotSupported, IncompatibleTable, UnsafeTable, UnsupportedType)
"""A table of another tool is neither damaged nor gone, and no storage failed."""
_ROWS = 2
_SNAPSHOTS = 1000


@dataclass(frozen=True)
class Foreign:
    """A table of another tool. ``name`` is what the author calls it."""

    name: str
    table: Table
    told: ForeignTable

    def __str__(self) -> str:
        return f"a table of another tool ({self.name})"

    def refuses(self, operation: str) -> bool:
        """Whether the author says so."""
        return operation in self.told.refuses

    @contextmanager
    def well(self, doing: str) -> Iterator[None]:
        """The block ends in no error of the format: the author did not say that it is refused."""
        __tracebackhide__ = True
        try:
            yield
        except (AssertionError, NotShown):
            raise
        except Exception as error:
            raise AssertionError(f"{self}: {doing}: expected no error, found {told(error)}") from error

    @contextmanager
    def refused(self, doing: str) -> Iterator[None]:
        """The block is refused, and leaves no file and no row."""
        __tracebackhide__ = True
        files, before = self.table.lake.files(), self.told.rows()
        with refused(REFUSALS, f"{self}: {doing}, which the harness says is refused") as refusal:
            yield
        assert len(refusal.text) > len(str(self.table.path)), f"{self}: {doing}: the refusal says {refusal.text!r}"
        expect(self.table.lake.files(), files, f"{self}: {doing}: the files of the warehouse after the refusal")
        same(self.told.rows(), before, f"{self}: {doing}: rows that the tool reads after the refusal")

    # -- what is asked ----------------------------------------------------------------------------------------------

    def is_read(self, after: str, expected: pa.Table | None = None) -> None:
        """Its rows, where we may read them, are those that the tool reads, or has just read."""
        if not self.refuses(READ):
            expected = self.told.rows() if expected is None else expected
            with self.well(f"it is read {after}"):
                same(self.table.read(), expected, f"{self}: rows that are read {after}")

    def has(self, expected: Sequence[pa.Table], after: str) -> None:
        """These rows, as the tool and as we read them."""
        found = self.told.rows()
        wanted = pa.concat_tables([each.select(found.schema.names).cast(found.schema) for each in expected])
        same(found, wanted, f"{self}: rows that the tool itself reads {after}")
        self.is_read(after, found)

    def ours(self) -> pa.Table:
        """Rows of the table's schema, for a round of ours: like some that are there, or nulls."""
        with self.well("its schema is told"):
            schema = self.table.info.schema
        there = self.told.rows()
        if not there.num_rows:
            return pa.Table.from_pylist([{}], schema=schema)
        return there.select(schema.names).slice(0, _ROWS).cast(schema)

    def round(self, epoch: int, rows: pa.Table, mode: WriteMode = WriteMode.APPEND) -> RoundOutcome:
        """A whole round."""
        tiering = TieringRound(self.table.factory, token=token(epoch), mode=mode, policy=QUICK)
        tiering.begin()
        return tiering.commit([self.table.stage_arrow(rows.to_batches(), mode=mode)]).outcome

    def publishes(self, epoch: int, rows: pa.Table, after: str) -> None:
        """A round of these rows, and a replay of it, on what the tool wrote ``after``."""
        before = self.told.rows()
        with self.well(f"a round is published {after}"):
            expect(self.round(epoch, rows), RoundOutcome.PUBLISHED, f"{self}: a round that is published {after}")
        self.replays(epoch, rows, after)
        self.has([before, rows], f"after epoch {epoch}, which was published {after}, and replayed")

    def replays(self, epoch: int, rows: pa.Table, after: str) -> None:
        """The epoch is there already."""
        with self.well(f"epoch {epoch} is replayed {after}"):
            expect(self.round(epoch, rows), RoundOutcome.ALREADY_THERE, f"{self}: epoch {epoch} is replayed {after}")

    def keeps_snapshots(self, after: str, *, some: bool = True) -> None:
        """The oldest and the newest of its snapshots, or each, have the rows that the tool reads of it."""
        ids = self._snapshots()
        for snapshot in (ids[:1] + ids[1:][-1:]) if some else ids:
            with self.well(f"snapshot {snapshot} is read {after}"):
                found, told_of_it = self.table.read(snapshot_id=snapshot), f"rows of snapshot {snapshot} {after}"
                same(found, self._of_then_or_today(snapshot, found), f"{self}: {told_of_it}")

    def _of_then_or_today(self, snapshot: int, found: pa.Table) -> pa.Table:
        """A column that changes without a commit leaves the newest snapshot its id. So by that id it has the columns of
        its commit, or those of today."""
        of_then = self.told.rows(snapshot)
        is_newest = snapshot == self.table.info.snapshot_id
        return self.told.rows() if is_newest and found.schema.names != of_then.schema.names else of_then

    def tells_its_history(self) -> None:
        """Each snapshot has a line, and is the one that was current at its moment."""
        lake, ids = self.table.lake, self._snapshots()
        if not ids or not lake.declares(Feature.HISTORY):
            return
        with self.well("its history is listed"):
            lines = self.table.history.snapshots(_SNAPSHOTS)
        listed = {line.snapshot_id: line.committed_at for line in lines}
        expect(sorted(set(ids).difference(listed)), [], f"{self}: older snapshots that no line of the history tells")
        times = list(listed.values())
        in_order = all(a is not None and b is not None and a > b for a, b in pairwise(times))
        if not in_order or not lake.declares(Feature.TIME_TRAVEL_BY_TIMESTAMP):
            return
        for snapshot in ids:
            moment = listed[snapshot]
            with self.well(f"it is read as of {moment}, when snapshot {snapshot} was committed"):
                found = self.table.source.plan(ScanRequest(as_of=moment)).snapshot_id
            expect(found, snapshot, f"{self}: the snapshot as of {moment}")

    def _snapshots(self) -> list[int]:
        if self.told.snapshots is None or self.refuses(READ) or not self.table.lake.declares(Feature.TIME_TRAVEL):
            return []
        return list(self.told.snapshots())


def same(found: pa.Table, expected: pa.Table, sentence: str) -> None:
    """The same rows, each as often, in any order; the same columns, in theirs. Text of another width is the same."""
    __tracebackhide__ = True
    expect(found.schema.names, expected.schema.names, f"{sentence}: the columns")
    for ours, theirs in zip(found.schema, expected.schema, strict=True):
        if any(_is_exact(each.type) for each in (ours, theirs)):
            expect(ours.type, theirs.type, f"{sentence}: the type of column {ours.name!r}")
    try:
        wanted = expected.cast(found.schema)
    except (pa.ArrowException, ValueError) as error:
        raise AssertionError(f"{sentence}: they do not fit the columns that are told: {told(error)}") from error
    rows, others = found.to_pylist(), wanted.to_pylist()
    if Counter(map(repr, rows)) != Counter(map(repr, others)):
        raise AssertionError(f"{sentence}: {of_rows(rows, others)}")


def _is_exact(kind: pa.DataType) -> bool:
    """Not one that libraries hold in several widths or units."""
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind) or pt.is_boolean(kind))


def less(rows: pa.Table, others: pa.Table) -> list[Any]:
    """Of ``rows`` those that ``others`` has not, each as often as it is missing."""
    return sorted((Counter(_texts(rows)) - Counter(_texts(others))).elements())


def _texts(rows: pa.Table) -> list[str]:
    return [repr(row) for row in rows.to_pylist()]


def reads(foreign: Foreign) -> None:
    """The whole, projections, a count, a limit, filters on each column, and what splits tell of themselves."""
    expected, table = foreign.told.rows(), foreign.table
    foreign.is_read("for the first time", expected)
    names = expected.schema.names
    expect(table.info.schema.names, names, f"{foreign}: the columns that are told of it")
    for columns in (tuple(reversed(names)), *((name,) for name in names)):
        found = table.read(columns=columns)
        same(found, expected.select(columns), f"{foreign}: rows that are read in the columns {columns}")
    source = table.source
    plan = source.plan(ScanRequest(columns=()))
    count = sum(batch.num_rows for split in plan.splits for batch in read_split(source, split, plan.schema))
    expect(count, expected.num_rows, f"{foreign}: the number of rows that are read without a column")
    few = table.read(limit=1)
    expect(few.num_rows, min(1, expected.num_rows), f"{foreign}: the number of rows, with a limit of one")
    _filters(foreign, table.read())
    _splits(foreign)


def _filters(foreign: Foreign, everything: pa.Table) -> None:
    """Beside all rows, filtered by pyarrow."""
    source = foreign.table.source
    for field in everything.schema:
        for predicate in _predicates(everything, field):
            plan = source.plan(ScanRequest(filters=(predicate,)))
            found = finished(read_plan(source, plan), plan, None)
            same(found, rows_for(predicate, everything), f"{foreign}: rows that are read by the filter {predicate}")


def _predicates(rows: pa.Table, field: pa.Field) -> list[Predicate]:
    name = field.name
    known: list[Predicate] = [Leaf(name, Op.IS_NULL)]
    if pt.is_boolean(field.type):
        return [*known, Leaf(name, Op.EQ, True)]
    if pt.is_nested(field.type) or pt.is_null(field.type):
        return known
    values = pc.unique(rows[name].combine_chunks().drop_null())
    if not len(values):
        return known
    ordered = values.take(pc.sort_indices(values)).to_pylist()
    low, middle, high = ordered[0], ordered[len(ordered) // 2], ordered[-1]
    known += [Leaf(name, Op.EQ, low), Leaf(name, Op.IN, (middle, high))]
    if pt.is_floating(field.type):  # bounds of many writers leave NaN out, of which this is true, and others have it
        finite = [value for value in ordered if math.isfinite(value)]
        known.append(Not(Leaf(name, Op.LT, max(finite, default=0.0) + 1.0)))
    return [*known, Leaf(name, Op.NE, low), Leaf(name, Op.LT, middle), Leaf(name, Op.GE, middle)]


def _splits(foreign: Foreign) -> None:
    """What is told of a split is so: its number of rows, and the file that is one of plain Parquet."""
    source = foreign.table.source
    plan = source.plan(ScanRequest())
    on_a_disk = local_folder(foreign.table.lake.location) is not None
    for split in plan.splits:
        rows = pa.Table.from_batches(read_split(source, split, plan.schema), plan.schema)
        if split.rows is not None:
            expect(rows.num_rows, split.rows, f"{foreign}: the number of rows of split {split.index}")
        if split.plain_parquet is not None and on_a_disk:
            content = apart.read(split.plain_parquet.removeprefix("file://"))
            plain = pq.ParquetFile(pa.BufferReader(content)).read()
            said = f"{foreign}: what is told as plain Parquet"
            expect(sorted(plain.schema.names), sorted(rows.schema.names), f"{said}: the columns, beside the split's")
            same(plain.select(rows.schema.names), rows, f"{said}: its rows, beside the split's")
