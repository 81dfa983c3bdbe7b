"""Dead letters as people look at them: which there are, and which were replayed.

A dead-letter table only grows. Which of its letters were replayed says a third table, beside both: a replay first
writes down there which letters it takes, and then appends their rows to the lake table as an epoch of that number. So
a letter was replayed when the lake table's watermark has reached the number that stands beside it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa

from laketier.config import LakeConfig
from laketier.dead_letters.table import SCHEMA, dead_letter_table, token_of
from laketier.registry import Lake, open_lake
from laketier.spi import BadRecord, Leaf, Op, Predicate, ScanRequest, TableNotFound, TablePath, Token
from laketier.tables.scan import scan
from laketier.tiering import pipelines

REPLAY = ".replay"
"""Ends the names of the pipelines of replays."""
REPLAYED_SCHEMA = pa.schema(
    [
        pa.field("letter", pa.string()),
        pa.field("bucket", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("replay", pa.int64()),
    ]
)
"""``letter``: `Letter.id`. ``replay``: the epoch of the lake table's replay pipeline that holds its rows."""
MOST_LETTERS = 50_000
CHUNK_BYTES = 256 * 1024 * 1024
"""About so much of their keys and values is decoded at once. One may be larger."""
_NUMBERS = re.compile(r"\d+")
_ERRORS = 5


class LetterState(StrEnum):
    """What became of a letter."""

    OPEN = "open"
    REPLAYING = "replaying"
    """A replay took it and has not ended, or was killed: the next one ends it."""
    REPLAYED = "replayed"


@dataclass(frozen=True)
class Letter:
    """One of the dead-letter table. Two that agree in all are one: they came from one record."""

    source_table: str
    record: BadRecord

    @property
    def id(self) -> str:
        """Tells it from the others of its table."""
        record = self.record
        parts = (record.bucket.encode(), str(record.offset).encode(), record.key, record.value, record.error.encode())
        digest = hashlib.sha256()
        for part in parts:
            digest.update(b"-" if part is None else b"%d:%b" % (len(part), part))
        return digest.hexdigest()[:32]


@dataclass(frozen=True)
class Replays:
    """``marks``: letter → the replay that took it. ``lake``: the last replay whose rows the lake table holds."""

    marks: Mapping[str, int]
    lake: Token | None

    def state(self, letter: Letter) -> LetterState:
        """What became of it."""
        replay = self.marks.get(letter.id)
        if replay is None:
            return LetterState.OPEN
        if self.lake is not None and replay <= self.lake.epoch:
            return LetterState.REPLAYED
        return LetterState.REPLAYING


@dataclass
class LettersSeen:
    """What there is of one table. ``errors``: how many letters have an error, those that differ in numbers taken
    together; the most frequent. ``newest_at``: ms since the epoch, UTC, None where no record had a time."""

    table: str
    letters: int = 0
    states: Counter[LetterState] = field(default_factory=Counter)
    newest_at: int | None = None
    errors: Sequence[tuple[str, int]] = ()


def replayed_table(target: TablePath) -> TablePath:
    """The table beside ``target`` that says which letters were replayed."""
    return TablePath(target.database, target.table + "__replayed")


def lake_beside(config: LakeConfig, table: TablePath) -> Lake:
    """The lake of a table beside the one that ``config`` names, which has its own columns alone."""
    return open_lake(replace(config, table=table, partition_by=(), bucket_by=None, merge_schema=False))


def scan_letters(
    config: LakeConfig, *, bucket: str | None = None, offset: int | None = None, limit: int | None = None
) -> Iterator[Letter] | None:
    """The letters of the lake table that ``config`` names, all, ``limit`` of them, or those of one place, in no order.
    None when it has no such table. Raises what the lake does."""
    lake = lake_beside(config, dead_letter_table(config.table))
    try:
        source = lake.source(lake.load_table())
    except TableNotFound:
        return None
    filters: list[Predicate] = []
    if bucket is not None:
        filters.append(Leaf("bucket", Op.EQ, bucket))
    if offset is not None:
        filters.append(Leaf("offset", Op.EQ, offset))
    _, batches = scan(source, ScanRequest(columns=tuple(SCHEMA.names), filters=tuple(filters), limit=limit))
    return (_letter(row) for batch in batches for row in _rows(batch))


def each_once(letters: Iterable[Letter]) -> Iterator[Letter]:
    """Letters that are the same in all but when they were written are of one record: it was reported more than once."""
    seen: set[bytes] = set()
    for letter in letters:
        digest = bytes.fromhex(letter.id)
        if digest not in seen:
            seen.add(digest)
            yield letter


def in_chunks(letters: Iterable[Letter], most: int = MOST_LETTERS) -> Iterator[list[Letter]]:
    """What can be held in memory at once: ``most`` letters, and about `CHUNK_BYTES`."""
    chunk: list[Letter] = []
    held = 0
    for letter in letters:
        length = len(letter.record.value or b"") + len(letter.record.key or b"")
        if chunk and (len(chunk) >= most or held + length > CHUNK_BYTES):
            yield chunk
            chunk, held = [], 0
        chunk.append(letter)
        held += length
    if chunk:
        yield chunk


def read_replays(config: LakeConfig) -> Replays:
    """Which letters were replayed into the lake table that ``config`` names. Raises what the lake does."""
    assert config.pipeline is not None
    lake = lake_beside(config, replayed_table(config.table))
    try:
        source = lake.source(lake.load_table())
    except TableNotFound:
        return Replays({}, None)
    _, batches = scan(source, ScanRequest(columns=("letter", "replay")))
    marks: dict[str, int] = {}
    for batch in batches:
        marks.update(zip(batch.column("letter").to_pylist(), batch.column("replay").to_pylist(), strict=True))
    return Replays(marks, lake_replay(open_lake(config), config.pipeline + REPLAY))


def lake_replay(lake: Lake, pipeline: str) -> Token | None:
    """The last replay that the lake table knows."""
    return token_of(pipelines.show(lake.current_state(), pipeline))


def see_letters(config: LakeConfig) -> LettersSeen | None:
    """Count them. None when there is no dead-letter table."""
    letters = scan_letters(config)
    if letters is None:
        return None
    replays = read_replays(config)
    seen = LettersSeen(str(dead_letter_table(config.table)))
    errors: Counter[str] = Counter()
    for letter in letters:
        seen.letters += 1
        seen.states[replays.state(letter)] += 1
        errors[_NUMBERS.sub("#", letter.record.error)] += 1
        if letter.record.at is not None:
            seen.newest_at = max(seen.newest_at or 0, letter.record.at)
    seen.errors = errors.most_common(_ERRORS)
    return seen


def marks_of(letters: Sequence[Letter], epoch: int) -> pa.RecordBatch:
    """That the replay ``epoch`` takes them, in `REPLAYED_SCHEMA`."""
    columns = [
        pa.array([letter.id for letter in letters], pa.string()),
        pa.array([letter.record.bucket for letter in letters], pa.string()),
        pa.array([letter.record.offset for letter in letters], pa.int64()),
        pa.array([epoch] * len(letters), pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=REPLAYED_SCHEMA)


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    at = batch.schema.get_field_index("at")
    # As a number: a time in a log may lie outside of what Python's dates hold.
    numbers = batch.column(at).cast(pa.timestamp("ms", batch.schema.field(at).type.tz), safe=False).cast(pa.int64())
    yield from batch.set_column(at, "at", numbers).to_pylist()


def _letter(row: dict[str, Any]) -> Letter:
    record = BadRecord(
        bucket=row["bucket"],
        offset=row["offset"],
        error=row["error"],
        value=row["value"],
        key=row["key"],
        at=row["at"],
        schema_version=row["schema_version"],
    )
    return Letter(row["source_table"], record)
