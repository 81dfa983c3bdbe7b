"""One round of one table from its log into its lake table: planned and finished on the driver, staged by tasks between.

The lake table's watermark says where the log goes on. Nothing else does: what a service keeps in its own database is
for its schedule and for people, and may be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from laketier.config import LakeConfig
from laketier.dead_letters.ahead import DigestsAhead, dead_letters_ahead
from laketier.dead_letters.failpoints import DEAD_LETTERS as DEAD_LETTERS_PUBLISHED
from laketier.dead_letters.still_bad import check_still_bad
from laketier.dead_letters.table import DEAD_LETTERS, DeadLetterRounds, token_of
from laketier.kit import failpoint
from laketier.kit.storage_errors import naming_storage_errors
from laketier.registry import Lake, open_lake
from laketier.rounds.log_task import LogAnswer, LogTask, OnBadRecordPolicy
from laketier.rounds.partial import publishable_tasks, required_tasks
from laketier.rounds.ranges import NextRange, OnExpired, next_range, plan_around, skipped_later
from laketier.rounds.round_settings import LogRoundResult, LogRoundSettings
from laketier.rounds.schema_sync import check_same, mode_of, prepared_table
from laketier.rounds.splits import split_groups
from laketier.rounds.stamps import check_history, stamped
from laketier.rounds.upsert import Merge, plan_merges
from laketier.spi import (
    FIRST_EPOCH,
    BucketBounds,
    ConfigError,
    Gap,
    LakeTieringFactory,
    LogOffsets,
    LogSplit,
    LogTable,
    OffsetsExpired,
    OpenFilesSlot,
    SourceRange,
    Stale,
    StorageError,
    TableInfo,
    TableLog,
    TableState,
    Token,
    TokenMismatch,
)
from laketier.tables import changed, trusted
from laketier.tiering import TieringRound, pipelines
from laketier.tiering.committed import committed_offsets, refuse_read_by_another
from laketier.tiering.horizon import attempts_after, clock_of_table
from laketier.tiering.open_files import refuse_open_files
from laketier.tiering.unstorable import Trial

_ENDS = "the tasks of this engine end with their round"


@dataclass
class LogRound:
    """Order: `plan`, its tasks on executors (`laketier.rounds.run_log_task`), then `finish` with all their answers,
    or `abort`. One thread at a time. Make a new one for each round.

    ``name``: of its tasks, where one job has those of several rounds; the pipeline by itself. ``raise_fence``: called
    by `plan` when the lake table has a higher fence than ours, with that fence. Returns the fence to continue with, or
    raises. ``look_again``: asks the source for the table as it is now. ``open_files``: where an engine that runs tasks
    in this very process lets files stay open for the next round; options that ask for such files are refused without.
    """

    log: TableLog
    config: LakeConfig
    settings: LogRoundSettings = field(default_factory=LogRoundSettings)
    name: str | None = None
    raise_fence: Callable[[int], int] | None = None
    look_again: Callable[[], LogTable] | None = None
    open_files: OpenFilesSlot | None = None

    def __post_init__(self) -> None:
        if self.config.pipeline is None:
            raise ConfigError(
                "a round from a log needs a pipeline", where=str(self.config.table), fix="Set lake.pipeline."
            )
        self._pipeline: str = self.config.pipeline
        self._next: NextRange | None = None
        self._tiering: TieringRound | None = None
        self._groups: list[tuple[LogSplit, ...]] = []
        self._dead: DeadLetterRounds | None = None
        self._ahead = DigestsAhead()
        self._epoch = FIRST_EPOCH
        self._fence = self.settings.fence
        self._last: Token | None = None
        self._lake: Lake | None = None

    def plan(self, bounds: Mapping[str, BucketBounds] | None = None) -> Sequence[LogTask]:
        """Look at the log (unless ``bounds`` say what it held a moment ago) and at the table, and say what there is to
        do: nothing, when the log holds nothing new.

        Raises what `LogRound` can't decide for its user: `OffsetsExpired`, `OffsetsRewritten` (the source was put back
        from a backup), `TableChanged` (its table was made anew), `Refused`; and `TableError`, `StorageError`,
        `ConfigError` for either side.
        """
        with trusted(self.config):
            return self._planned(bounds)

    def _planned(self, bounds: Mapping[str, BucketBounds] | None) -> Sequence[LogTask]:
        name = self.log.table.name
        with naming_storage_errors(f"the log of {name} was read", setting="the source's options"):
            bounds = self.log.bounds() if bounds is None else bounds
        lake = self._lake = open_lake(self.config)
        prepared = prepared_table(lake, self.log.table)
        # The table is looked at once, here: the state, the factory and the plan of a merge are of what was seen.
        factory, state = lake.tiering_factory(prepared), lake.state(prepared)
        if self.open_files is None:
            refuse_open_files(factory, where=str(self.config.table), why=_ENDS)
        watermark = pipelines.show(state, self._pipeline)
        committed = committed_offsets(watermark, self.log.table, where=str(self.config.table))
        if watermark is None or watermark.forgotten:
            refuse_read_by_another(state, self._pipeline, self.log.table, where=str(self.config.table))
        self._next = next_range(committed, bounds, most=self.settings.most, on_expired=self.settings.on_expired)
        if self._next.wanted.is_empty and not self._next.skipped:
            if prepared.handle is None:
                self._roll_forward(factory)
            return ()
        self._last = token_of(watermark)
        if self._last is not None:
            self._epoch = self._last.epoch + 1
        self._next = self._stamped(self._next)
        if self.settings.on_bad_record is OnBadRecordPolicy.DEAD_LETTER:
            dead_letters = self._pipeline + DEAD_LETTERS
            self._dead = DeadLetterRounds.open(self.config, dead_letters, self.log.table.table_id)
            ahead = dead_letters_ahead(self.config, self._next.wanted.start, self._dead.known)
            noted = self._ahead.noting(ahead)
            if not self.log.table.primary_key:  # such a table's letters are never replayed
                trial = Trial(factory, attempts_after(state, clock_of_table(factory)))
                check_still_bad(self.config, self.log, noted, trial)
            self._ahead.note_rest()
        self._raise_fence()
        token = self._token(self._pipeline, self._epoch, self._next.source)
        self._tiering = TieringRound(factory, token=token, mode=mode_of(self.log.table))
        try:
            with self._overtaken_as_stale():
                self._tiering.begin(state)
            with naming_storage_errors(f"a round of {name} was planned"):
                planned, splits = plan_around(self.log, self._next, self.settings.on_expired)
                groups = self._grouped(lake, prepared, state, splits)
        except BaseException:
            self._tiering.close()
            raise
        self._change_range(planned)
        self._groups = [splits for splits, _ in groups]
        # Of a merge no task can be left for later: each has the newest of its keys from all that it reads.
        must = required_tasks(self._groups) if not self.log.table.primary_key else [True] * len(groups)
        return [self._task(factory, *each, index, must[index]) for index, each in enumerate(groups)]

    def _roll_forward(self, factory: LakeTieringFactory[Any]) -> None:
        """Open the table as a committer does, so that a commit whose process died between its effect and its end is
        finished. Otherwise the next commit does that, and readers of the files alone would lack rows for as long as the
        log holds nothing new. A table that was loaded with its handle has no such commit."""
        with closing(TieringRound(factory)) as look:
            look.begin()

    def _stamped(self, upcoming: NextRange) -> NextRange:
        """``upcoming`` with the log's stamp of its end, if the log has still the history that the table has read.
        Whenever it is put back from a backup from here on, the next round finds another stamp at the latest."""
        with naming_storage_errors(f"the log of {self.log.table.name} was read", setting="the source's options"):
            source = stamped(upcoming.source, self.log)
            read = None if self._last is None else self._last.source
            check_history(read, self.log, where=str(self.config.table))
        return replace(upcoming, source=source)

    def _grouped(
        self, lake: Lake, prepared: TableInfo, state: TableState, splits: Sequence[LogSplit]
    ) -> Sequence[tuple[tuple[LogSplit, ...], Merge | None]]:
        """What each task reads, and with a primary key merges with."""
        if not self.log.table.primary_key:
            return [(group, None) for group in split_groups(splits)]
        assert self._tiering is not None
        base = self._tiering.base_snapshot
        return plan_merges(lake.source(prepared), prepared, self.log.table, splits, base, state)

    def _raise_fence(self) -> None:
        """Continue with a higher fence where the lake table has one. Otherwise a service that lost its state database,
        whose fences start again, would be refused for ever."""
        known = [self._last, None if self._dead is None else self._dead.last]
        highest = max((token.fence for token in known if token is not None), default=0)
        if highest > self._fence and self.raise_fence is not None:
            self._fence = self.raise_fence(highest)

    @contextmanager
    def _overtaken_as_stale(self) -> Iterator[None]:
        """A refusal because another driver published while this round ran is no fault that a person must
        mend: the next round goes on from there. Such are a zombie's commit after its lease was taken over, and a
        commit whose driver took the answer to be lost."""
        try:
            yield
        except (TokenMismatch, Gap) as refused:
            if not self._moved_on():
                raise
            raise Stale(
                "another driver published while this round ran",
                where=str(self.config.table),
                why=str(refused),
                fix="Nothing was published. The next round starts where that one ended.",
            ) from refused

    def _moved_on(self) -> bool:
        assert self._lake is not None
        if token_of(pipelines.show(self._lake.current_state(), self._pipeline)) != self._last:
            return True
        return self._dead is not None and self._dead.moved_on()

    def finish(self, answers: Iterable[LogAnswer]) -> LogRoundResult:
        """Publish what the tasks staged, in one step; before it, what they dead-lettered, so that no bad record is
        missing from both.

        Where tasks were left unread as time was up, it publishes what was read in one piece, and the round ends there.

        Raises the first task's error, when one failed, after deleting what the others staged; `TableChanged` when the
        source's table was recreated meanwhile, `SchemaChanged` when its schema changed; `Stale` when another driver
        moved the lake table on; `Overtaken` when anybody did while rows were merged with it; and as
        `TieringRound.commit`.
        """
        answers = list(answers)
        assert self._next is not None, "finish comes after plan"
        if self._tiering is None:
            return LogRoundResult(None, self.end, self._next.left, left_at=self._next.left_at)
        try:
            self._check(answers)
            answers = self._in_one_piece(answers)
            self._publish_dead_letters(answers, self.end)
        except BaseException:
            self.abort(answers)
            raise
        with trusted(self.config), self._overtaken_as_stale():
            done = self._tiering.commit_messages([answer.message for answer in answers if answer.message is not None])
        changed(self.config)
        return LogRoundResult(
            done.outcome,
            self.end,
            self._next.left,
            epoch=self._epoch,
            rows=done.rows,
            files=done.files,
            bytes=done.bytes,
            bad=sum(answer.bad for answer in answers),
            snapshot_id=done.snapshot_id,
            left_at=self._next.left_at,
            start=LogOffsets.from_text(self._next.source.start),
        )

    def _check(self, answers: Sequence[LogAnswer]) -> None:
        """Ids never come back. So a table that is the same one after all was read was so while it was read. A task's
        error comes second: an older schema may be all that was wrong."""
        if len({answer.index for answer in answers}) < len(answers):
            raise StorageError(
                "the engine gave two answers for one task",
                where=str(self.config.table),
                why="published together, their rows would be there twice",
                fix="Nothing was published. The next round runs the tasks again.",
            )
        error = next((answer.error for answer in answers if answer.error is not None), None)
        if self.look_again is not None:
            check_same(self.log.table, self.look_again(), where=str(self.config.table))
        if isinstance(error, OffsetsExpired) and self._skips_later(error):
            raise skipped_later(error)
        if error is not None:
            raise error

    def _skips_later(self, expired: OffsetsExpired) -> bool:
        """Whether the next round passes over what expired in this one: it was listed, or the log begins later by now,
        or has the bucket no more. Else each round would miss again what this one missed, as a file that was deleted."""
        if self.settings.on_expired is not OnExpired.SKIP or expired.again:
            return False
        if expired.gone:
            return True
        assert self._next is not None
        start, bounds = self._next.wanted.start, self.log.bounds()
        return any(bucket not in bounds or bounds[bucket].earliest > start[bucket] for bucket in start)

    def _in_one_piece(self, answers: Sequence[LogAnswer]) -> list[LogAnswer]:
        """What may be published of a round that was out of time, which then ends where that ends. The rest is deleted,
        dead letters too: the next round reads it."""
        assert self._next is not None
        run = {answer.index for answer in answers if not answer.unread}
        kept, end = publishable_tasks(self._groups, run, self._next.wanted)
        if len(kept) == len(self._groups):
            return list(answers)
        self.abort([answer for answer in answers if answer.index not in kept])
        self._change_range(self._next.up_to(end))
        return [answer for answer in answers if answer.index in kept]

    def _change_range(self, upcoming: NextRange) -> None:
        """Read another range than the round began with. Its token names the range, and must change before it is
        published."""
        if upcoming == self._next:
            return
        assert self._tiering is not None
        self._next = upcoming
        self._tiering.change_token(self._token(self._pipeline, self._epoch, upcoming.source))

    def _publish_dead_letters(self, answers: Sequence[LogAnswer], end: LogOffsets) -> None:
        messages = [answer.dead_letters for answer in answers if answer.dead_letters is not None]
        if self._dead is None or not messages:
            return
        with self._overtaken_as_stale():
            self._dead.publish(messages, self._token, end)
        failpoint(DEAD_LETTERS_PUBLISHED)

    @property
    def last_epoch(self) -> int | None:
        """That of the lake table's watermark, as `plan` saw it. None where there was none, or nothing to do."""
        return None if self._last is None else self._last.epoch

    @property
    def end(self) -> LogOffsets:
        """Where the table will have read up to. After `plan`."""
        assert self._next is not None
        return LogOffsets.from_text(self._next.source.end)

    def abort(self, answers: Sequence[LogAnswer]) -> None:
        """Give the round up before its commit: delete what was staged, but no dead letters that may be published."""
        if self._tiering is None:
            return
        messages = [answer.message for answer in answers if answer.message is not None]
        self._tiering.abort_messages(messages, commit_was_called=False)
        if self._dead is not None and not self._dead.publish_was_called:
            self._dead.abort([answer.dead_letters for answer in answers if answer.dead_letters is not None])

    def _token(self, pipeline: str, epoch: int, source: SourceRange, content: str | None = None) -> Token:
        assert self._next is not None
        return Token(
            pipeline=pipeline,
            run=self.log.table.table_id,
            epoch=epoch,
            fence=self._fence,
            content=self._next.content if content is None else content,
            source=source,
        )

    def _task(
        self,
        factory: LakeTieringFactory[Any],
        splits: tuple[LogSplit, ...],
        merge: Merge | None,
        index: int,
        must: bool,
    ) -> LogTask:
        assert self._tiering is not None
        return LogTask(
            table=self.name or self._pipeline,
            log=self.log,
            splits=splits,
            factory=factory,
            index=index,
            policy=self.settings.on_bad_record,
            within=None if must else self.settings.within,
            dead_letters=None if self._dead is None else self._dead.factory,
            dead_letters_from=LogOffsets() if self._dead is None else self._dead.known,
            dead_letters_known=self._ahead.of(split.bucket for split in splits),
            merge=merge,
            attempts_after=self._tiering.attempts_after,
            dead_letter_attempts_after=0 if self._dead is None else self._dead.attempts_after,
            open_files=self.open_files if index == 0 else None,
        )
