"""Dead letters, and which of them were replayed.

A dead-letter table only grows. A third table records which dead letters were replayed. A replay first appends the ids
of the dead letters that it takes to that table, with the number of its epoch. Then it appends their rows to the lake
table, as an epoch of the same number. So a dead letter was replayed when the lake table's watermark has reached the
number recorded for it.
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
"""The suffix of the pipelines of replays."""
REPLAYED_SCHEMA = pa.schema(
    [
        pa.field("letter", pa.string()),
        pa.field("bucket", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("replay", pa.int64()),
    ]
)
"""``letter``: `DeadLetter.id`. ``replay``: the epoch of the lake table's replay pipeline that holds its rows."""
MAX_CHUNK_RECORDS = 50_000
CHUNK_BYTES = 256 * 1024 * 1024
"""The size of a chunk: bytes of keys and values that are decoded at once. A single larger record is a chunk alone."""
_NUMBERS = re.compile(r"\d+")
_ERRORS = 5


class DeadLetterState(StrEnum):
    """The states of a dead letter."""

    OPEN = "open"
    REPLAYING = "replaying"
    """A replay has recorded it and has not published its rows yet. If that replay was killed, the next one ends it."""
    REPLAYED = "replayed"


@dataclass(frozen=True)
class DeadLetter:
    """A row of the dead-letter table. Rows with equal fields count as one: they came from one record."""

    source_table: str
    record: BadRecord

    @property
    def id(self) -> str:
        """A digest of the record, unique within the dead-letter table."""
        record = self.record
        parts = (record.bucket.encode(), str(record.offset).encode(), record.key, record.value, record.error.encode())
        digest = hashlib.sha256()
        for part in parts:
            digest.update(b"-" if part is None else b"%d:%b" % (len(part), part))
        return digest.hexdigest()[:32]


@dataclass(frozen=True)
class Replays:
    """The replays of one lake table.

    Attributes:
        marks: The replay that took each dead letter, by `DeadLetter.id`.
        lake: The last replay whose rows the lake table holds. None before the first one.
    """

    marks: Mapping[str, int]
    lake: Token | None

    def state(self, dead_letter: DeadLetter) -> DeadLetterState:
        """The state of one dead letter."""
        replay = self.marks.get(dead_letter.id)
        if replay is None:
            return DeadLetterState.OPEN
        if self.lake is not None and replay <= self.lake.epoch:
            return DeadLetterState.REPLAYED
        return DeadLetterState.REPLAYING


@dataclass
class DeadLetterSummary:
    """Counts of the dead letters of one table.

    Attributes:
        table: The dead-letter table.
        total: The number of dead letters.
        states: The number of dead letters in each state.
        newest_at: The newest time of a record, in ms since the epoch, UTC. None where no record had a time.
        errors: The most frequent errors and their counts. Errors that differ only in numbers count as one.
    """

    table: str
    total: int = 0
    states: Counter[DeadLetterState] = field(default_factory=Counter)
    newest_at: int | None = None
    errors: Sequence[tuple[str, int]] = ()


def replayed_table(target: TablePath) -> TablePath:
    """The table that records which dead letters of ``target`` were replayed."""
    return TablePath(target.database, target.table + "__replayed")


def lake_beside(config: LakeConfig, table: TablePath) -> Lake:
    """Open the lake for a table beside the one that ``config`` names: without its partitions, buckets and evolution."""
    return open_lake(replace(config, table=table, partition_by=(), bucket_by=None, merge_schema=False))


def scan_dead_letters(
    config: LakeConfig,
    *,
    bucket: str | None = None,
    offset: int | None = None,
    offsets: tuple[int, int] | None = None,
    limit: int | None = None,
) -> Iterator[DeadLetter] | None:
    """Read the dead letters of the lake table that ``config`` names, in no order.

    Args:
        config: The lake table.
        bucket: Only records of this bucket of the log.
        offset: Only records at this offset.
        offsets: Only records from the first offset on, before the second. Files that have none are not read.
        limit: The number of dead letters to read at most. None reads all.

    Returns:
        The dead letters. None when there is no dead-letter table.

    Raises:
        LaketierError: As the lake raises it.
    """
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
    if offsets is not None:
        filters += [Leaf("offset", Op.GE, offsets[0]), Leaf("offset", Op.LT, offsets[1])]
    _, batches = scan(source, ScanRequest(columns=tuple(SCHEMA.names), filters=tuple(filters), limit=limit))
    return (_dead_letter(row) for batch in batches for row in _rows(batch))


def each_once(dead_letters: Iterable[DeadLetter]) -> Iterator[DeadLetter]:
    """Drop repeated dead letters. A record that was reported more than once has several equal rows."""
    seen: set[bytes] = set()
    for dead_letter in dead_letters:
        digest = bytes.fromhex(dead_letter.id)
        if digest not in seen:
            seen.add(digest)
            yield dead_letter


def in_chunks(dead_letters: Iterable[DeadLetter], most: int = MAX_CHUNK_RECORDS) -> Iterator[list[DeadLetter]]:
    """Cut into chunks that fit into memory: up to ``most`` dead letters and about `CHUNK_BYTES` each."""
    chunk: list[DeadLetter] = []
    size = 0
    for dead_letter in dead_letters:
        length = len(dead_letter.record.value or b"") + len(dead_letter.record.key or b"")
        if chunk and (len(chunk) >= most or size + length > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(dead_letter)
        size += length
    if chunk:
        yield chunk


def read_replays(config: LakeConfig) -> Replays:
    """Read the replays into the lake table that ``config`` names. Raises `LaketierError` as the lake does."""
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
    """The last replay whose token the lake table holds."""
    return token_of(pipelines.show(lake.current_state(), pipeline))


def summarize_dead_letters(config: LakeConfig) -> DeadLetterSummary | None:
    """Count the dead letters of the lake table that ``config`` names. None when there is no dead-letter table."""
    dead_letters = scan_dead_letters(config)
    if dead_letters is None:
        return None
    replays = read_replays(config)
    seen = DeadLetterSummary(str(dead_letter_table(config.table)))
    errors: Counter[str] = Counter()
    for dead_letter in dead_letters:
        seen.total += 1
        seen.states[replays.state(dead_letter)] += 1
        errors[_NUMBERS.sub("#", dead_letter.record.error)] += 1
        if dead_letter.record.at is not None:
            seen.newest_at = max(seen.newest_at or 0, dead_letter.record.at)
    seen.errors = errors.most_common(_ERRORS)
    return seen


def marks_of(dead_letters: Sequence[DeadLetter], epoch: int) -> pa.RecordBatch:
    """The rows, in `REPLAYED_SCHEMA`, that record that the replay ``epoch`` takes these dead letters."""
    columns = [
        pa.array([dead_letter.id for dead_letter in dead_letters], pa.string()),
        pa.array([dead_letter.record.bucket for dead_letter in dead_letters], pa.string()),
        pa.array([dead_letter.record.offset for dead_letter in dead_letters], pa.int64()),
        pa.array([epoch] * len(dead_letters), pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=REPLAYED_SCHEMA)


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    at = batch.schema.get_field_index("at")
    # As a number: a time in a log may lie outside of what Python's dates hold.
    numbers = batch.column(at).cast(pa.timestamp("ms", batch.schema.field(at).type.tz), safe=False).cast(pa.int64())
    yield from batch.set_column(at, "at", numbers).to_pylist()


def _dead_letter(row: dict[str, Any]) -> DeadLetter:
    record = BadRecord(
        bucket=row["bucket"],
        offset=row["offset"],
        error=row["error"],
        value=row["value"],
        key=row["key"],
        at=row["at"],
        schema_version=row["schema_version"],
    )
    return DeadLetter(row["source_table"], record)
