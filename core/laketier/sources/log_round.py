"""One round of one table from its log into its lake table: planned and finished on the driver, staged by tasks between.

The lake table's watermark says where the log goes on. Nothing else does: what a service keeps in its own database is
for its schedule and for people, and may be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from laketier.config import LakeConfig
from laketier.metadata import TableLayout, prepare_table
from laketier.plugins import Lake, open_lake
from laketier.sources.dead_letters import SCHEMA, dead_letter_table
from laketier.sources.log_task import LogAnswer, LogTask, OnBadRecordPolicy
from laketier.sources.ranges import NextRange, OnExpired, next_range
from laketier.spi import (
    FIRST_EPOCH,
    ConfigError,
    LakeTieringFactory,
    LogOffsets,
    LogSplit,
    LogTable,
    SourceRange,
    TableChanged,
    TableInfo,
    TableLog,
    Token,
    Watermark,
    WatermarkLost,
)
from laketier.spi.storage_errors import naming_storage_errors
from laketier.tiering import Ending, TieringRound, pipelines

SPLITS_OF_A_TASK = 256 * 1024
"""Splits are put into one task up to about this many offsets (bytes, where they are known: a hundred times as many), as
each task makes at least one file."""
_BYTES_PER_OFFSET = 100
DEAD_LETTERS = ".dead-letters"


@dataclass(frozen=True)
class LogRoundSettings:
    """How a table's rounds go. ``fence``: of the lease, 0 without one. ``most``: offsets per round, about."""

    fence: int = 0
    most: int | None = None
    on_expired: OnExpired = OnExpired.FAIL
    on_bad_record: OnBadRecordPolicy = OnBadRecordPolicy.FAIL


@dataclass(frozen=True)
class LogRoundResult:
    """What a round did. ``ending`` is None when the log held nothing new. ``end``: where the table has read up to.
    ``left``: offsets that the log held beyond that when the round was planned. ``bad``: records that are no rows."""

    ending: Ending | None
    end: LogOffsets
    left: int
    epoch: int | None = None
    rows: int = 0
    files: int = 0
    bytes: int = 0
    bad: int = 0
    snapshot_id: int | None = None


@dataclass
class LogRound:
    """Order: `plan`, its tasks on executors (`laketier.sources.run_log_task`), then `finish` with all their answers,
    or `abort`. One thread at a time. Make a new one for each round."""

    log: TableLog
    config: LakeConfig
    settings: LogRoundSettings = field(default_factory=LogRoundSettings)

    def __post_init__(self) -> None:
        if self.config.pipeline is None:
            raise ConfigError(
                "a round from a log needs a pipeline", where=str(self.config.table), fix="Set lake.pipeline."
            )
        self._pipeline: str = self.config.pipeline
        self._next: NextRange | None = None
        self._tiering: TieringRound | None = None
        self._dead: _DeadLetters | None = None
        self._epoch = FIRST_EPOCH

    def plan(self) -> Sequence[LogTask]:
        """Look at the log and at the table, and say what there is to do: nothing, when the log holds nothing new.

        Raises what `LogRound` can't decide for its user: `OffsetsExpired`, `TableChanged` (the source's table was made
        anew), `Refused`; and `TableError`, `StorageError`, `ConfigError` for either side.
        """
        name = self.log.table.name
        with naming_storage_errors(f"the log of {name} was read"):
            bounds = self.log.bounds()
        lake = open_lake(self.config)
        factory = lake.tiering_factory(_prepared(lake, self.log.table))
        watermark = pipelines.show(factory, self._pipeline)
        committed = committed_offsets(watermark, self.log.table, where=str(self.config.table))
        self._next = next_range(committed, bounds, most=self.settings.most, on_expired=self.settings.on_expired)
        if self._next.wanted.is_empty and not self._next.skipped:
            return ()
        if watermark is not None and not watermark.forgotten:
            self._epoch = watermark.token.epoch + 1
        self._tiering = TieringRound(factory, token=self._token(self._pipeline, self._epoch, self._next.source))
        self._tiering.begin()
        if self.settings.on_bad_record is OnBadRecordPolicy.DEAD_LETTER:
            self._dead = _DeadLetters.open(self.config, self._pipeline + DEAD_LETTERS)
        with naming_storage_errors(f"a round of {name} was planned"):
            groups = _grouped(self.log.plan(self._next.wanted))
        return [self._task(factory, splits, index) for index, splits in enumerate(groups)]

    def finish(self, answers: Sequence[LogAnswer]) -> LogRoundResult:
        """Publish what the tasks staged, in one step; before it, what they dead-lettered, so that no bad record is
        missing from both. Raises the first task's error, when one failed, after deleting what the others staged; and
        as `TieringRound.commit`."""
        upcoming = self._next
        assert upcoming is not None, "finish comes after plan"
        end = self.end
        if self._tiering is None:
            return LogRoundResult(None, end, upcoming.left)
        error = next((answer.error for answer in answers if answer.error is not None), None)
        if error is not None:
            self.abort(answers)
            raise error
        if self._dead is not None:
            messages = [answer.dead_letters for answer in answers if answer.dead_letters is not None]
            self._dead.publish(messages, self._token, end)
        done = self._tiering.commit_messages([answer.message for answer in answers if answer.message is not None])
        return LogRoundResult(
            done.ending,
            end,
            upcoming.left,
            epoch=self._epoch,
            rows=done.rows,
            files=done.files,
            bytes=done.bytes,
            bad=sum(answer.bad for answer in answers),
            snapshot_id=done.snapshot_id,
        )

    @property
    def end(self) -> LogOffsets:
        """Where the table will have read up to. After `plan`."""
        assert self._next is not None
        return LogOffsets.from_text(self._next.source.end)

    def abort(self, answers: Sequence[LogAnswer]) -> None:
        """Give the round up before its commit: delete what was staged."""
        if self._tiering is None:
            return
        messages = [answer.message for answer in answers if answer.message is not None]
        self._tiering.abort_messages(messages, commit_was_called=False)
        if self._dead is not None:
            self._dead.abort([answer.dead_letters for answer in answers if answer.dead_letters is not None])

    def _token(self, pipeline: str, epoch: int, source: SourceRange, content: str | None = None) -> Token:
        assert self._next is not None
        return Token(
            pipeline=pipeline,
            run=self.log.table.table_id,
            epoch=epoch,
            fence=self.settings.fence,
            content=self._next.content if content is None else content,
            source=source,
        )

    def _task(self, factory: LakeTieringFactory[Any], splits: tuple[LogSplit, ...], index: int) -> LogTask:
        return LogTask(
            table=self._pipeline,
            log=self.log,
            splits=splits,
            factory=factory,
            epoch=self._epoch,
            index=index,
            policy=self.settings.on_bad_record,
            dead_letters=None if self._dead is None else self._dead.factory,
            dead_letters_from=LogOffsets() if self._dead is None else self._dead.known,
        )


@dataclass
class _DeadLetters:
    """The table beside the target. Two tables can't be one atomic step: its rounds come first, with offsets of their
    own, and a bad record below them is there already."""

    factory: LakeTieringFactory[Any]
    pipeline: str
    watermark: Watermark | None
    known: LogOffsets

    @classmethod
    def open(cls, config: LakeConfig, pipeline: str) -> _DeadLetters:
        beside = replace(
            config, table=dead_letter_table(config.table), partition_by=(), bucket_by=None, merge_schema=False
        )
        lake = open_lake(beside)
        factory = lake.tiering_factory(prepare_table(lake, SCHEMA))
        watermark = pipelines.show(factory, pipeline)
        source = None if watermark is None or watermark.forgotten else watermark.token.source
        return cls(factory, pipeline, watermark, LogOffsets() if source is None else LogOffsets.from_text(source.end))

    def publish(self, messages: Sequence[bytes], token: Any, end: LogOffsets) -> None:
        if not messages:
            return
        last = None if self.watermark is None or self.watermark.forgotten else self.watermark.token
        known = self.known
        reached = LogOffsets({**known, **{bucket: max(offset, known.get(bucket, 0)) for bucket, offset in end.items()}})
        made = token(
            self.pipeline,
            FIRST_EPOCH if last is None else last.epoch + 1,
            SourceRange(known.to_text(), reached.to_text()),
            "dead-letters",
        )
        TieringRound(self.factory, token=made).commit_messages(messages)

    def abort(self, messages: Sequence[bytes]) -> None:
        TieringRound(self.factory).abort_messages(messages, commit_was_called=False)


def _prepared(lake: Lake, table: LogTable) -> TableInfo:
    """The lake table with the source's columns: created with its partitions and buckets unless the user said
    otherwise, and given the columns that the source has got since."""
    follows = replace(lake, config=replace(lake.config, merge_schema=True))
    return prepare_table(follows, table.schema, TableLayout(table.partition_by, table.buckets))


def committed_offsets(watermark: Watermark | None, table: LogTable, *, where: str) -> LogOffsets | None:
    """Where the lake table has read up to; None when it holds nothing of the log. Raises `TableChanged` when the
    source's table is another one by now, and `WatermarkLost` when the watermark has no offsets."""
    if watermark is None or watermark.forgotten:
        return None
    token = watermark.token
    if token.run != table.table_id:
        raise TableChanged(
            f"the source's table {table.name!r} was made anew: its id is {table.table_id!r}, and the lake table was "
            f"tiered from {token.run!r}",
            where=where,
            fix="Register it with another target, or drop the lake table; `laketier pipeline adopt` continues into it.",
        )
    if token.source is None:
        raise WatermarkLost(
            f"the table knows epoch {token.epoch} of pipeline {token.pipeline!r}, and no offsets",
            where=where,
            why="the pipeline was adopted or rewound by hand",
            fix="Run `laketier pipeline forget` to read the log from its earliest offset into a table without its "
            "rows.",
        )
    return LogOffsets.from_text(token.source.end)


def _grouped(splits: Sequence[LogSplit]) -> list[tuple[LogSplit, ...]]:
    """Small splits share a task; in the order of the plan."""
    groups: list[tuple[LogSplit, ...]] = []
    weight = 0
    for split in splits:
        own = split.end - split.start if split.bytes is None else split.bytes // _BYTES_PER_OFFSET
        if groups and weight + own <= SPLITS_OF_A_TASK:
            groups[-1] = (*groups[-1], split)
            weight += own
        else:
            groups.append((split,))
            weight = own
    return groups


__all__ = ["DEAD_LETTERS", "LogRound", "LogRoundResult", "LogRoundSettings", "committed_offsets"]
