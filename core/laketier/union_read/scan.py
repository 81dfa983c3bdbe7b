"""Lake and log as one: a planned union read, whose splits are read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import tenacity

from laketier.kit.conform import conform
from laketier.kit.storage_errors import naming_storage_errors
from laketier.kit.views import only
from laketier.rounds.stamps import check_still
from laketier.spi import (
    BadRecord,
    LakeSplit,
    LogRange,
    LogSplit,
    OnBadRecord,
    Predicate,
    SourceRange,
    StorageError,
    TableLog,
    fail_on_bad_record,
)
from laketier.tables.scan import Scan, condition_of, limited
from laketier.union_read.merge_read import MergeRead, MergeSplit

_PATIENCE_SECONDS = 30
_LONGEST_WAIT_SECONDS = 2

UnionSplit = LakeSplit | LogSplit | MergeSplit


@dataclass(frozen=True)
class LakeHalf:
    """The scan of the snapshot. ``rows``: its columns as the union has them, under the names and with the types that
    the source gave them since."""

    scan: Scan
    rows: pa.Schema

    def read(self, splits: Iterable[LakeSplit]) -> Iterator[pa.RecordBatch]:
        """The rows of ``splits``, on an executor."""
        names = self.rows.names
        for split in splits:
            for batch in self.scan.read(split):
                named = batch if batch.schema.names == names else batch.rename_columns(names)
                yield conform(named, self.rows)


@dataclass(frozen=True)
class UnionScan:
    """A planned union read. Its splits can be read one by one, on any process; each gives batches of exactly
    ``schema``, with the filters applied. ``offsets``: how far each half reaches: the lake up to ``start`` of them, the
    log from there to ``end``."""

    schema: pa.Schema
    lake: LakeHalf | None
    log: TableLog
    splits: tuple[UnionSplit, ...]
    """All splits, those of the lake first."""
    offsets: LogRange
    snapshot_id: int | None
    needed: pa.Schema
    """``schema``, and the columns that the filters and the merge need besides."""
    filters: tuple[Predicate, ...] = ()
    limit: int | None = None
    tolerant: bool = False
    merge: MergeRead | None = None
    """For a table with a primary key."""
    where: str = ""
    """The lake table, for messages."""
    source: SourceRange | None = None
    """What is read of the log, with its stamp. None where nothing is, and of a scan that is not looked at again."""

    @property
    def log_splits(self) -> tuple[LogSplit, ...]:
        """The splits of the log, each once."""
        parts = (split.log if isinstance(split, MergeSplit) else (split,) for split in self.splits)
        return tuple(dict.fromkeys(each for part in parts for each in part if isinstance(each, LogSplit)))

    def for_tasks(self) -> UnionScan:
        """The same scan without its splits, which travel to their tasks one by one."""
        lake = None if self.lake is None else replace(self.lake, scan=self.lake.scan.for_tasks())
        return replace(self, lake=lake, splits=())

    def read(self, split: UnionSplit) -> Iterator[pa.RecordBatch]:
        """Read one split, on an executor. The limit holds per split; over all splits the reader stops by itself."""
        match split:
            case LakeSplit():
                return self._finished(self._lake((split,)))
            case LogSplit():
                columns = [name for name in self.needed.names if name in self.log.table.schema.names]
                return self._finished(self._changes((split,), columns))
            case MergeSplit():
                assert self.merge is not None
                changes = self._changes(split.log, self.merge.columns(split, self.log.table))
                return self._finished(self.merge.merged(split, self._lake(split.lake), changes))

    def read_in_task(self, splits: Iterable[UnionSplit]) -> Iterator[pa.RecordBatch]:
        """Read splits, on an executor, where nobody looks at the source once all were read. So the task looks at its
        end, if the log can tell there (`TableLog.identify`), and raises as `check_still`. A query that has enough rows
        ends its tasks early: so it looks too before it hands over the first batch of the log, and the 2nd, 4th, 8th.
        The last one is held back until the look at the end, so that a task of one batch looks once."""
        of_log, batches = False, 0
        ready: pa.RecordBatch | None = None
        for split in splits:
            if isinstance(split, LakeSplit):
                yield from self.read(split)
                continue
            of_log = True
            for batch in self.read(split):
                if ready is not None:
                    batches += 1
                    if not batches & (batches - 1):
                        self.look_again(self.log.identify, or_not_at_all=True)
                    yield ready
                ready = batch
        if of_log:
            self.look_again(self.log.identify, or_not_at_all=True)
        if ready is not None:
            yield ready

    def look_again(self, identify: Callable[[], str | None], *, or_not_at_all: bool = False) -> None:
        """Raise as `check_still` where the log was made again or put back since the plan. ``identify``: asks for the
        table's id by now. ``or_not_at_all``: where it gives none, the log has no stamp here either. A source that does
        not answer is asked for a moment longer: engines that run a task once would fail for it, with all rows read."""
        if self.source is None:
            return
        asked = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(StorageError),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=_LONGEST_WAIT_SECONDS),
            stop=tenacity.stop_after_delay(_PATIENCE_SECONDS),
            reraise=True,
        )
        with naming_storage_errors("a union read was looked at again"):
            asked(self._look, self.source, identify, or_not_at_all)

    def _look(self, source: SourceRange, identify: Callable[[], str | None], or_not_at_all: bool) -> None:
        table_id = identify()
        if table_id is not None or not or_not_at_all:
            check_still(source, self.log, table_id, where=self.where)

    def _lake(self, splits: Sequence[LakeSplit]) -> Iterator[pa.RecordBatch]:
        return iter(()) if self.lake is None else self.lake.read(splits)

    def _changes(self, splits: Iterable[LogSplit], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        handler: OnBadRecord = _passed_over if self.tolerant else fail_on_bad_record
        for split in splits:
            yield from self.log.read(split, columns=columns, on_bad_record=handler)

    def _finished(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What is left to do for either half. A column that it lacks is null there, to filters too."""
        condition = condition_of(self.filters, self.needed)
        whole = (conform(batch, self.needed) for batch in batches)
        kept = (rows if condition is None else only(rows, condition) for rows in whole)
        return limited((rows.select(self.schema.names) for rows in kept if rows.num_rows), self.limit)


def _passed_over(record: BadRecord) -> None:
    """It is no row in the lake either."""
