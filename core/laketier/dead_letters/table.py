"""Records that could not be made rows, as a table: what was in the log, where, and why it is not in the lake table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from laketier.config import LakeConfig
from laketier.registry import Lake, open_lake
from laketier.spi import (
    FIRST_EPOCH,
    BadRecord,
    LakeTieringFactory,
    LogOffsets,
    SourceRange,
    TableChanged,
    TablePath,
    Token,
    Watermark,
)
from laketier.tables import prepare_table
from laketier.tiering import TieringRound, pipelines
from laketier.tiering.horizon import attempts_after, clock_of_table

SUFFIX = "__dead_letters"
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, which are those that readers of tables know."""
DEAD_LETTERS = ".dead-letters"
"""Ends the names of the pipelines of such tables."""

SCHEMA = pa.schema(
    [
        pa.field("source_table", pa.string()),
        pa.field("bucket", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("error", pa.string()),
        pa.field("schema_version", pa.string()),
    ]
)
"""``bucket`` and ``offset`` say where the record is in the log; ``at`` when it was written to it."""


def dead_letter_table(target: TablePath) -> TablePath:
    """The table beside ``target`` that holds its bad records."""
    return TablePath(target.database, target.table + SUFFIX)


def _microseconds(at: int | None) -> int | None:
    """A producer sets the time of a record, to any number. One that no calendar has is none."""
    return None if at is None or not _FIRST_MS <= at <= _LAST_MS else at * 1000


def dead_letter_batch(source_table: str, records: Sequence[BadRecord]) -> pa.RecordBatch:
    """``records`` in `SCHEMA`, whatever they hold. They have less than 2 GiB together, where an array of bytes ends."""
    columns = [
        pa.array([source_table] * len(records), pa.string()),
        pa.array([record.bucket for record in records], pa.string()),
        pa.array([record.offset for record in records], pa.int64()),
        pa.array([_microseconds(record.at) for record in records], pa.timestamp("us", tz="UTC")),
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array([record.error.encode("utf-8", "backslashreplace").decode() for record in records], pa.string()),
        pa.array([record.schema_version for record in records], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@dataclass
class DeadLetterRounds:
    """The table beside the target. Two tables can't be one atomic step: its rounds come first, with offsets of their
    own, and a bad record below them is there already."""

    lake: Lake
    factory: LakeTieringFactory[Any]
    pipeline: str
    last: Token | None
    known: LogOffsets
    publish_was_called: bool = False
    attempts_after: int = 0

    @classmethod
    def open(cls, config: LakeConfig, pipeline: str, run: str) -> DeadLetterRounds:
        """``run``: the identity of the source's table. Raises `TableChanged` where the letters are of another one: its
        offsets are of other records, and new ones below them would be in neither table."""
        beside = replace(
            config, table=dead_letter_table(config.table), partition_by=(), bucket_by=None, merge_schema=False
        )
        lake = open_lake(beside)
        table = prepare_table(lake, SCHEMA)
        factory, state = lake.tiering_factory(table), lake.state(table)
        last = token_of(pipelines.show(state, pipeline))
        fix = f"Nothing was read. Drop {beside.table}, which can't be replayed any more; copy it if you need it."
        refuse_others(last, run, where=str(beside.table), fix=fix)
        source = None if last is None else last.source
        known = LogOffsets() if source is None else LogOffsets.from_text(source.end)
        after = attempts_after(state, clock_of_table(factory))
        return cls(lake, factory, pipeline, last, known, attempts_after=after)

    def moved_on(self) -> bool:
        return token_of(pipelines.show(self.lake.current_state(), self.pipeline)) != self.last

    def publish(self, messages: Sequence[bytes], token: Any, end: LogOffsets) -> None:
        self.publish_was_called = True
        known = self.known
        end_offsets = LogOffsets(
            {**known, **{bucket: max(offset, known.get(bucket, 0)) for bucket, offset in end.items()}}
        )
        made = token(
            self.pipeline,
            FIRST_EPOCH if self.last is None else self.last.epoch + 1,
            SourceRange(known.to_text(), end_offsets.to_text()),
            "dead-letters",
        )
        TieringRound(self.factory, token=made).commit_messages(messages)

    def abort(self, messages: Sequence[bytes]) -> None:
        TieringRound(self.factory).abort_messages(messages, commit_was_called=False)


def refuse_others(last: Token | None, run: str, *, where: str, fix: str) -> None:
    """Raise `TableChanged` where the dead letters up to ``last`` are not of the source's table ``run``."""
    if last is not None and last.run != run:
        raise TableChanged(
            f"the dead letters are of another table of the source: its id was {last.run!r}, and is {run!r}",
            where=where,
            why="it was dropped and made anew",
            fix=fix,
        )


def token_of(watermark: Watermark | None) -> Token | None:
    return None if watermark is None or watermark.forgotten else watermark.token
