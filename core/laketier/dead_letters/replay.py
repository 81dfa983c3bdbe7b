"""Replays dead letters: decodes them again and appends those that are rows now that the table can store, each once.

A replay commits to two tables, which is not one atomic step, and the settings may change between the two commits. So a
replay first records which dead letters it takes (`laketier.dead_letters.records`). That record decides: when the replay
is killed before it publishes their rows, the next replay appends the rows of exactly these dead letters, as the epoch
recorded for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pyarrow as pa

from laketier.config import LakeConfig
from laketier.dead_letters.failpoints import REPLAY_CHOSEN, REPLAY_STAGED
from laketier.dead_letters.records import (
    MAX_CHUNK_RECORDS,
    REPLAY,
    REPLAYED_SCHEMA,
    DeadLetter,
    DeadLetterState,
    Replays,
    each_once,
    in_chunks,
    lake_beside,
    lake_replay,
    marks_of,
    read_replays,
    replayed_table,
    scan_dead_letters,
)
from laketier.dead_letters.table import DEAD_LETTERS, dead_letter_table, refuse_others, token_of
from laketier.dead_letters.unfit import Key, key_of, undecodable, unfit
from laketier.kit import failpoint
from laketier.registry import open_lake
from laketier.spi import (
    FIRST_EPOCH,
    BadRecord,
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    Gap,
    LakeTieringFactory,
    LogOffsets,
    SourceRange,
    Stale,
    TableLog,
    TableNotFound,
    Token,
    TokenMismatch,
    UnstorableRows,
    WatermarkLost,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tables import prepare_table
from laketier.tiering import TieringRound, pipelines, write_task
from laketier.tiering.committed import committed_offsets
from laketier.tiering.horizon import attempts_after, clock_of_table
from laketier.tiering.unstorable import Trial

_Factory = LakeTieringFactory[Any]


@dataclass(frozen=True)
class ReplayResult:
    """The result of a replay or of a dry run.

    Attributes:
        replayed: The dead letters whose rows were appended.
        rows: The number of their rows.
        unfit: The dead letters that still are no rows, or none that the table can store.
        waiting: The dead letters of a round that has not ended yet.
        errors: The first few of the unfit records, with their errors.
    """

    replayed: int = 0
    rows: int = 0
    unfit: int = 0
    waiting: int = 0
    errors: tuple[BadRecord, ...] = ()


def replay(config: LakeConfig, log: TableLog, *, dry_run: bool = False, most: int = MAX_CHUNK_RECORDS) -> ReplayResult:
    """Decode the dead letters of a lake table, and append those that are rows now. Driver.

    Args:
        config: The lake table, with its pipeline.
        log: The log of its source's table.
        dry_run: Count only, and publish nothing. Files that are staged to see whether rows can be stored are deleted.
        most: The number of dead letters of one epoch at most.

    Returns:
        The counts.

    Raises:
        FeatureNotSupported: The source can't decode dead letters, or the log is one of changes.
        TableNotFound: There is no dead-letter table.
        TableChanged: The dead letters are of another table of the source.
        ConfigError: A killed replay recorded dead letters that are no rows with the present settings.
        Stale: Another replay runs at the same time.
        LaketierError: As the source and the lake raise it.
    """
    return _Replay(config, log, most).run(dry_run)


class _Replay:
    def __init__(self, config: LakeConfig, log: TableLog, most: int) -> None:
        if log.table.primary_key or log.table.change_column is not None:
            raise FeatureNotSupported(
                "the replay of dead letters",
                format=f"the log of changes {log.table.name}",
                reason="an old change would undo newer ones of its key",
                fix="Write the record to the source again.",
            )
        assert config.pipeline is not None
        self._config = config
        self._log = log
        self._most = most
        self._pipeline = config.pipeline + REPLAY
        self._where = str(config.table)
        self._rows_after = self._marks_after = 0
        self._committed = self._tiered_up_to()

    def _tiered_up_to(self) -> LogOffsets:
        """Dead letters beyond belong to a round that has not ended. That round may run again and read them as rows."""
        assert self._config.pipeline is not None
        lake = open_lake(self._config)
        try:
            state = lake.current_state()
        except TableNotFound:
            return LogOffsets()
        watermark = pipelines.show(state, self._config.pipeline)
        self._check_identity()
        return committed_offsets(watermark, self._log.table, where=self._where) or LogOffsets()

    def _check_identity(self) -> None:
        """Dead letters of a table that was dropped and recreated in the source are not replayed into the new one."""
        assert self._config.pipeline is not None
        lake = lake_beside(self._config, dead_letter_table(self._config.table))
        last = lake_replay(lake, self._config.pipeline + DEAD_LETTERS)
        fix = "Nothing was replayed. Write the records to the source again, or drop the dead-letter table."
        refuse_others(last, self._log.table.table_id, where=self._where, fix=fix)

    def run(self, dry_run: bool) -> ReplayResult:
        if dry_run or not self._committed:
            replays, trial = read_replays(self._config), self._trial()
            done = ReplayResult()
            for dead_letters in self._chunks(replays, DeadLetterState.REPLAYING):
                done = _sum(done, ReplayResult(replayed=len(dead_letters)))
            for dead_letters in self._chunks(replays, DeadLetterState.OPEN):
                done = _sum(done, self._looked_at(dead_letters, trial))
            return _sum(done, ReplayResult(waiting=self._waiting(replays)))
        lake = open_lake(self._config)
        follows = replace(lake, config=replace(lake.config, merge_schema=True))
        table = prepare_table(follows, self._log.table.schema)
        factory = lake.tiering_factory(table)
        beside = lake_beside(self._config, replayed_table(self._config.table))
        beside_table = prepare_table(beside, REPLAYED_SCHEMA)
        marks = beside.tiering_factory(beside_table)
        # Before what was replayed is read: should another replay go on in between, ours is refused, and knows no less.
        seen = beside.state(beside_table)
        last = token_of(pipelines.show(seen, self._pipeline))
        self._marks_after = attempts_after(seen, clock_of_table(marks))
        self._rows_after = attempts_after(lake.state(table), clock_of_table(factory))
        done = self._finish_earlier(factory, marks, read_replays(self._config), last)
        replays = read_replays(self._config)
        for dead_letters in self._chunks(replays, DeadLetterState.OPEN):
            result, last = self._epoch(factory, marks, dead_letters, last)
            done = _sum(done, result)
        return _sum(done, ReplayResult(waiting=self._waiting(replays)))

    def _chunks(self, replays: Replays, state: DeadLetterState) -> Iterator[list[DeadLetter]]:
        dead_letters = (
            dead_letter
            for dead_letter in self._dead_letters()
            if self._is_tiered(dead_letter) and replays.state(dead_letter) is state
        )
        for chunk in in_chunks(each_once(dead_letters), self._most):
            yield sorted(chunk, key=lambda each: (each.record.bucket, each.record.offset, each.id))

    def _dead_letters(self) -> Iterator[DeadLetter]:
        dead_letters = scan_dead_letters(self._config)
        if dead_letters is None:
            raise TableNotFound("the table has no dead letters", where=self._where)
        return dead_letters

    def _is_tiered(self, dead_letter: DeadLetter) -> bool:
        return dead_letter.record.offset < self._committed.get(dead_letter.record.bucket, 0)

    def _waiting(self, replays: Replays) -> int:
        ahead = (dead_letter for dead_letter in self._dead_letters() if not self._is_tiered(dead_letter))
        return sum(replays.state(dead_letter) is DeadLetterState.OPEN for dead_letter in each_once(ahead))

    def _tried(
        self, dead_letters: Sequence[DeadLetter], factory: _Factory
    ) -> tuple[ReplayResult, list[DeadLetter], bytes]:
        """Decode, and stage the rows. Returns counts, the dead letters that are rows, and the staged rows' message."""
        records = [dead_letter.record for dead_letter in dead_letters]
        bad = undecodable(self._log, [record for record in records if record.value is None])
        try:
            rows, message = self._stage(records, bad, factory)
        except UnstorableRows:
            bad |= unfit(self._log, records, Trial(factory, self._rows_after))
            rows, message = self._stage(records, bad, factory)
        return _counted(dead_letters, bad, rows), _fit(dead_letters, bad), message

    def _stage(self, records: Sequence[BadRecord], bad: dict[Key, BadRecord], factory: _Factory) -> tuple[int, bytes]:
        """The rows of all records but the ``bad`` ones, to which it adds. Returns their number and the message."""
        rows = 0

        def decoded() -> Iterator[pa.RecordBatch]:
            nonlocal rows
            left = [record for record in records if key_of(record) not in bad]
            for batch in self._log.decode(left, on_bad_record=lambda record: bad.update({key_of(record): record})):
                rows += batch.num_rows
                yield batch

        context = WriterInitContext(attempt=new_attempt_id(self._rows_after), split_index=0)
        message = write_task(factory, decoded(), context)
        return rows, message

    def _looked_at(self, dead_letters: Sequence[DeadLetter], trial: Trial | None) -> ReplayResult:
        records = [dead_letter.record for dead_letter in dead_letters]
        bad = unfit(self._log, records, trial)
        left = [record for record in records if key_of(record) not in bad]
        return _counted(dead_letters, bad, sum(batch.num_rows for batch in self._log.decode(left)))

    def _trial(self) -> Trial | None:
        """Attempts to write to the table as it is now. None where there is none yet."""
        lake = open_lake(self._config)
        try:
            table = lake.load_table()
        except TableNotFound:
            return None
        factory = lake.tiering_factory(table)
        return Trial(factory, attempts_after(lake.state(table), clock_of_table(factory)))

    def _epoch(
        self,
        factory: _Factory,
        marks: _Factory,
        dead_letters: list[DeadLetter],
        last: Token | None,
    ) -> tuple[ReplayResult, Token | None]:
        epoch = FIRST_EPOCH if last is None else last.epoch + 1
        result, fit, message = self._tried(dead_letters, factory)
        if not fit:
            TieringRound(factory).abort_messages([message], commit_was_called=False)
            return result, last
        failpoint(REPLAY_STAGED)
        token = self._token(fit, last)
        context = WriterInitContext(attempt=new_attempt_id(self._marks_after), split_index=0)
        chosen = write_task(marks, [marks_of(fit, epoch)], context)
        try:
            TieringRound(marks, token=token).commit_messages([chosen])
        except (TokenMismatch, Gap, Stale) as refused:
            TieringRound(factory).abort_messages([message], commit_was_called=False)
            raise _overtaken(self._where, str(refused)) from refused
        failpoint(REPLAY_CHOSEN)
        TieringRound(factory, token=token).commit_messages([message])
        return result, token

    def _finish_earlier(self, factory: _Factory, marks: _Factory, replays: Replays, last: Token | None) -> ReplayResult:
        """End the replay that chose dead letters and was killed before their rows were in the lake table."""
        lake = 0 if replays.lake is None else replays.lake.epoch + 1
        chosen = 0 if last is None else last.epoch + 1
        if lake > chosen:
            beside = lake_beside(self._config, replayed_table(self._config.table))
            if token_of(pipelines.show(beside.current_state(), self._pipeline)) != last:
                raise _overtaken(self._where, "it went on while this one looked how far they are")
            raise WatermarkLost(
                f"the lake table holds {lake} replays, and the table of replays knows {chosen}",
                where=str(replayed_table(self._config.table)),
                why="it was dropped or taken back to an older state",
                fix="Restore it: without it, dead letters would be replayed twice.",
            )
        if last is None or lake == chosen:
            return ReplayResult()
        chosen_then = [
            dead_letter for dead_letter in self._dead_letters() if replays.marks.get(dead_letter.id) == last.epoch
        ]
        dead_letters = sorted(
            each_once(chosen_then), key=lambda each: (each.record.bucket, each.record.offset, each.id)
        )
        if last.content not in (_content(dead_letters), _content(chosen_then)):
            raise CorruptTable(
                "dead letters that a replay had chosen are not in the dead-letter table any more",
                where=str(dead_letter_table(self._config.table)),
                fix="Restore it to where it was when the replay was killed.",
            )
        result, fit, message = self._tried(dead_letters, factory)
        if len(fit) < len(dead_letters):
            TieringRound(factory).abort_messages([message], commit_was_called=False)
            first = result.errors[0]
            raise ConfigError(
                f"a killed replay had chosen {len(dead_letters)} dead letters, and {result.unfit} of them are no rows "
                "with the present settings",
                where=self._where,
                why=f"offset {first.offset} of bucket {first.bucket!r}: {first.error}",
                fix="Set the table's `read` settings, and the options of its lake table, back to what they were, "
                "replay, and change them then.",
            )
        TieringRound(factory, token=last).commit_messages([message])
        return result

    def _token(self, dead_letters: Sequence[DeadLetter], last: Token | None) -> Token:
        before = 0 if last is None or last.source is None else int(last.source.end)
        return Token(
            pipeline=self._pipeline,
            run=self._log.table.table_id,
            epoch=FIRST_EPOCH if last is None else last.epoch + 1,
            content=_content(dead_letters),
            # Positions among all dead letters that were ever replayed.
            source=SourceRange(str(before), str(before + len(dead_letters))),
        )


def _overtaken(where: str, why: str) -> Stale:
    return Stale(
        "another replay of the table runs at the same time",
        where=where,
        why=why,
        fix="Run this one again when the other has ended; it continues from there.",
    )


def _content(dead_letters: Sequence[DeadLetter]) -> str:
    ids = sorted(dead_letter.id for dead_letter in dead_letters)
    return f"letters:{hashlib.sha256(' '.join(ids).encode()).hexdigest()}"


def _fit(dead_letters: Sequence[DeadLetter], bad: Mapping[Key, BadRecord]) -> list[DeadLetter]:
    return [dead_letter for dead_letter in dead_letters if key_of(dead_letter.record) not in bad]


def _counted(dead_letters: Sequence[DeadLetter], bad: Mapping[Key, BadRecord], rows: int) -> ReplayResult:
    fit = len(_fit(dead_letters, bad))
    return ReplayResult(fit, rows, len(dead_letters) - fit, errors=tuple(islice(bad.values(), 3)))


def _sum(one: ReplayResult, other: ReplayResult) -> ReplayResult:
    return ReplayResult(
        one.replayed + other.replayed,
        one.rows + other.rows,
        one.unfit + other.unfit,
        one.waiting + other.waiting,
        (one.errors + other.errors)[:3],
    )
