"""What a table must hold: a few dicts, and a verdict on rounds that shares no code with `laketier.spi.decide`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from laketier.spi import (
    Collected,
    Fenced,
    Gap,
    SchemaChanged,
    SourceRange,
    Stale,
    Token,
    TokenMismatch,
    WatermarkLost,
    WriteMode,
    WriteResult,
    attempt_began_at,
)
from laketier.tiering import RoundOutcome

Row = tuple[int, int]
"""An id, and how many columns the table had been given when the row was staged. All values follow from the two."""

BY_CONTENT, BY_RANGE = "by content", "by range"
PIPELINES = (BY_CONTENT, BY_RANGE)
"""One whose tokens name their content, and one whose tokens name the range of the source instead."""
BASE = (pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string()), pa.field("value", pa.float64()))
MOST_ADDED = 3


def added_column(number: int) -> pa.Field:
    return pa.field(f"added_{number}", pa.int64())


def schema_with(added: int) -> pa.Schema:
    return pa.schema([*BASE, *(added_column(number) for number in range(added))])


def values_of(row: Row) -> dict[str, object]:
    """The row as a reader gets it, nulls left out."""
    key, added = row
    values: dict[str, object] = {"id": key}
    if key % 7 != 3:
        values["name"] = f"row {key}"
    if key % 5 != 4:
        values["value"] = key / 4
    return values | {f"added_{number}": key * (number + 2) for number in range(added)}


def batch_of(ids: Sequence[int], added: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([values_of((key, added)) for key in ids], schema=schema_with(added))


@dataclass(frozen=True)
class Round:
    """A round as its driver means it: what a replay of it would stage again."""

    token: Token | None
    tasks: tuple[tuple[int, ...], ...]
    mode: WriteMode = WriteMode.APPEND

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(key for task in self.tasks for key in task)

    def with_token(self, **changes: object) -> Round:
        assert self.token is not None
        return replace(self, token=replace(self.token, **changes))  # type: ignore[arg-type]


@dataclass
class Model:
    """``published``: pipeline → its rounds in the table's history, epoch 0 first. ``started``: pipeline → a round that
    a driver began and nobody has published; the next driver takes the same epoch with the same rows. ``snapshots``:
    what each snapshot within retention shows. ``horizon``: in ms, attempts that began before it are refused."""

    rows: Counter[Row] = field(default_factory=Counter)
    added: int = 0
    published: dict[str, list[Round]] = field(default_factory=dict)
    started: dict[str, Round] = field(default_factory=dict)
    snapshots: dict[int, Counter[Row]] = field(default_factory=dict)
    horizon: int = 0
    used: int = 0

    def next_round(self, pipeline: str, sizes: Sequence[int], mode: WriteMode = WriteMode.APPEND) -> Round:
        """What the pipeline's driver does next: the round that was begun and not published, or a new one."""
        if pipeline not in self.started:
            self.started[pipeline] = self.new_round(pipeline, sizes, mode)
        return self.started[pipeline]

    def new_round(self, pipeline: str, sizes: Sequence[int], mode: WriteMode = WriteMode.APPEND) -> Round:
        """The next epoch, with rows, a content and a range that no other round has."""
        last = self.last(pipeline)
        tasks = self.new_tasks(sizes)
        content = source = None
        if pipeline == BY_RANGE:
            start = "0" if last is None or last.token is None or last.token.source is None else last.token.source.end
            source = SourceRange(start, f"after {self._unique()}")
        else:
            content = f"content {self._unique()}"
        epoch = len(self.published.get(pipeline, ()))
        fence = 0 if last is None or last.token is None else last.token.fence
        return Round(Token(pipeline, "run", epoch, fence, content, source), tasks, mode)

    def new_tasks(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Ids that no other row has, for as many tasks as there are sizes."""
        tasks = []
        for size in sizes:
            tasks.append(tuple(range(self.used, self.used + size)))
            self.used += size
        return tuple(tasks)

    def _unique(self) -> int:
        self.used += 1
        return self.used

    def last(self, pipeline: str) -> Round | None:
        rounds = self.published.get(pipeline)
        return rounds[-1] if rounds else None

    def verdict(self, round: Round, staged: Sequence[WriteResult], staged_with: int) -> RoundOutcome | type[Exception]:
        """How a commit of these results must end. ``staged_with``: how many columns were added before they were."""
        if round.token is not None:
            decided = self._verdict_of(round.token)
            if decided is not None:
                return decided
        if staged and staged_with != self.added:
            return SchemaChanged
        if any(result.files and attempt_began_at(result.attempt) < self.horizon for result in staged):
            return Collected
        return RoundOutcome.PUBLISHED

    def _verdict_of(self, token: Token) -> RoundOutcome | type[Exception] | None:
        last = self.last(token.pipeline)
        if last is None or last.token is None:
            return None if token.epoch == 0 else WatermarkLost
        mark = last.token
        if token.fence < mark.fence:
            return Fenced
        if token.run != mark.run:
            return TokenMismatch
        if token.epoch < mark.epoch:
            return Stale
        if token.epoch == mark.epoch:
            same = (token.content, token.source) == (mark.content, mark.source)
            return RoundOutcome.ALREADY_THERE if same else TokenMismatch
        follows = mark.source is None or token.source is None or mark.source.end == token.source.start
        return None if token.epoch == mark.epoch + 1 and follows else Gap

    def publish(self, round: Round, staged_with: int) -> None:
        """The round's rows are in the table now."""
        if round.mode is WriteMode.OVERWRITE:
            self.rows = Counter()
        self.rows = self.rows + Counter((key, staged_with) for key in round.ids)
        if round.token is not None:
            pipeline = round.token.pipeline
            self.published.setdefault(pipeline, []).append(round)
            self.started.pop(pipeline, None)
