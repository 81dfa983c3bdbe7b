"""A round: one range of one table, from reading the watermark to the acknowledgement."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import (
    CommitterInitContext,
    Decision,
    IncompatibleData,
    LakeCommitter,
    LakeTieringFactory,
    TableChanged,
    TableState,
    Token,
    WriteMode,
    WriteResult,
    WriterInitContext,
    decide,
    new_attempt_id,
    pack,
    unpack,
)
from laketier.tiering.checks import BaseSnapshot
from laketier.tiering.failpoints import ROUND_OPENED, failpoint
from laketier.tiering.horizon import attempts_after, clock_of_table
from laketier.tiering.publish import RoundOutcome, RoundResult, discard, publish
from laketier.tiering.retries import DEFAULT_POLICY, RetryPolicy

log = logging.getLogger(__name__)


class TieringRound:
    """Drives one round on the driver; `write_task` is its other half on the executors.

    Order: `begin` (optional where the engine gives no place for it: `commit` decides again anyway), the tasks, then
    `commit` with all their messages or `abort`. One thread. Make a new one for each attempt at a round.

    With `WriteMode.UPSERT`, `begin` is not optional: its tasks merge with the snapshot that it saw (`base_snapshot`),
    and `commit` raises `Overtaken` when the table is at another one.
    """

    def __init__(
        self,
        factory: LakeTieringFactory[Any],
        *,
        token: Token | None = None,
        mode: WriteMode = WriteMode.APPEND,
        commit_id: str | None = None,
        policy: RetryPolicy = DEFAULT_POLICY,
    ) -> None:
        self._factory = factory
        self._token = token
        self._policy = policy
        self._mode = mode
        self._commit_id = commit_id
        self._base: BaseSnapshot | None = None
        self._attempts_after = 0
        self._made: LakeCommitter[Any] | None = None

    @property
    def _committer(self) -> LakeCommitter[Any]:
        """Made when it is needed first, for whatever ends the round but `commit`."""
        if self._made is None:
            self._made = self._committer_for(self._commit_id or new_attempt_id())
        return self._made

    def _committer_for(self, commit_id: str) -> LakeCommitter[Any]:
        return self._factory.create_committer(CommitterInitContext(commit_id=commit_id, mode=self._mode))

    def begin(self, state: TableState | None = None) -> Decision:
        """Decide before anything is written: PROCEED, DONE (write nothing), or raise `Refused`. ``state`` is the
        result of `LakeStorage.state` when the round began; without it, the table is loaded. It need not be fresh:
        `commit` loads the table again and decides by that. With an old state, work may be wasted."""
        with naming_storage_errors("the table was read"):
            if state is None:
                state = self._committer.open()
            decision = Decision.PROCEED
            if self._token is not None:
                decision = decide(state.watermark(self._token.pipeline), self._token)
            if decision is Decision.PROCEED:
                self._attempts_after = attempts_after(state, clock_of_table(self._factory))
        if self._mode is WriteMode.UPSERT:
            self._base = BaseSnapshot(state.snapshot_id)
        failpoint(ROUND_OPENED)
        return decision

    @property
    def base_snapshot(self) -> int | None:
        """The snapshot that the tasks of a round with `WriteMode.UPSERT` merge with, None for a table that has none
        yet. After `begin`."""
        if self._base is None:
            raise ValueError("a round that merges rows begins before its tasks do")
        return self._base.snapshot_id

    @property
    def attempts_after(self) -> int:
        """The table's horizon, which the tasks of a round give to `new_attempt_id`. 0 before `begin`."""
        return self._attempts_after

    def change_token(self, token: Token) -> None:
        """Give the round another range of the same epoch than it began with. Call it before `commit`, which decides
        with it. The base of a merge stays the same."""
        if self._token is None or (token.pipeline, token.epoch) != (self._token.pipeline, self._token.epoch):
            raise ValueError(f"a round of {self._token} can't continue as {token}")
        self._token = token

    def close(self) -> None:
        """Release the resources of `begin`, if another process ends the round."""
        if self._made is not None:
            self._made.close()
            self._made = None

    def confirm_done(self) -> RoundResult:
        """End a round that `begin` found DONE, without any written file. Publishes nothing, whatever the state of
        the table. Raises `TableChanged` when the epoch is not in the table any more: its rows are then missing."""
        token = self._token
        try:
            with naming_storage_errors("the table was read"):
                state = self._committer.open()
                watermark = None if token is None else state.watermark(token.pipeline)
            if token is None or watermark is None or decide(watermark, token) is not Decision.DONE:
                raise TableChanged(
                    "the epoch was in the table when the round began, and is not any more",
                    why="the table was restored, overwritten or recreated meanwhile",
                    fix="Run the round again: it decides from what the table holds now.",
                )
            return RoundResult(RoundOutcome.ALREADY_THERE, watermark.rows, 0, 0, watermark.snapshot_id)
        finally:
            self.close()

    def commit(self, results: Sequence[WriteResult]) -> RoundResult:
        """Publish exactly once. Raises as `laketier.tiering.publish.publish`.

        Unless a commit id was given, it is made from the attempts that staged the results, so that the loop knows its
        own files in the table. Called once for the same results, as Spark does: a round that is run again stages again,
        as a refusal deletes what was staged where that is certain to be safe."""
        if self._mode is WriteMode.UPSERT and self._base is None:
            raise ValueError("a round that merges rows begins before its tasks do")
        commit_id = self._commit_id or commit_id_of(results)
        self.close()
        committer = self._committer_for(commit_id)
        try:
            return publish(
                committer,
                results,
                token=self._token,
                commit_id=commit_id,
                policy=self._policy,
                base=self._base,
            )
        finally:
            committer.close()

    def commit_messages(self, messages: Iterable[bytes]) -> RoundResult:
        """Call `commit` with the messages of `write_task`. Raises `SerializationError` for a damaged one."""
        serializer = self._factory.write_result_serializer
        return self.commit([unpack(serializer, message) for message in messages])

    def abort(self, results: Sequence[WriteResult], *, commit_was_called: bool) -> None:
        """The engine gives the round up. Its word is a hint, not a fact: Spark aborts with every message after a
        commit that landed without an answer. So staged files are deleted only when ``commit_was_called`` is
        certainly False. Otherwise they are left to orphan collection."""
        try:
            if commit_was_called:
                log.warning("the round was given up after its commit began: nothing is deleted")
            else:
                discard(self._committer, results)
        finally:
            self.close()

    def abort_messages(self, messages: Iterable[bytes], *, commit_was_called: bool) -> None:
        """Call `abort` with the messages of `write_task`."""
        serializer = self._factory.write_result_serializer
        self.abort([unpack(serializer, message) for message in messages], commit_was_called=commit_was_called)


def commit_id_of(results: Sequence[WriteResult]) -> str:
    """Compute the id of the commit of these results: attempts are unguessable and belong to one task attempt. A
    commit without results gets a new id each time, as it has no rows to lose."""
    attempts = sorted(result.attempt for result in results)
    if not attempts:
        return new_attempt_id()
    return hashlib.sha256("\n".join(attempts).encode()).hexdigest()[:32]


class StagedTask:
    """The files of one task attempt while they are written: ``write`` any number of times, then ``complete``. Executor.
    One thread.

    As a context manager it deletes them when the block raises: the result went to nobody.
    """

    def __init__(self, factory: LakeTieringFactory[Any], context: WriterInitContext | None = None) -> None:
        self._factory = factory
        with naming_storage_errors("a writer was made"):
            self._writer = factory.create_writer(context or WriterInitContext(attempt=new_attempt_id()))

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage rows. Raises also `IncompatibleData`, for what is no record batch."""
        if not isinstance(batch, pa.RecordBatch):
            raise IncompatibleData(
                f"rows come as record batches of Arrow, and this is {type(batch).__name__}",
                fix="Give an iterable of record batches: [batch], or the to_batches() of a table.",
            )
        with naming_storage_errors("rows were staged"):
            self._writer.write(batch)

    def complete(self, replaced: Sequence[str] = ()) -> bytes:
        """The message for `TieringRound.commit_messages`. ``replaced``: see `WriteResult.replaced`."""
        with naming_storage_errors("staged files were completed"):
            result = self._writer.complete()
            if replaced:
                result = replace(result, replaced=tuple(replaced))
            return pack(self._factory.write_result_serializer, result)

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)


def write_task(
    factory: LakeTieringFactory[Any],
    batches: Iterable[pa.RecordBatch],
    context: WriterInitContext | None = None,
    replaced: Sequence[str] = (),
) -> bytes:
    """Stage ``batches`` on an executor and return the message for `TieringRound.commit_messages`. ``replaced`` (see
    `WriteResult.replaced`) is read after the last batch, so the producer of the batches may fill it. After any
    failure, in the input or in the writer, the attempt's own files are deleted: its result was given to nobody."""
    with StagedTask(factory, context) as staged:
        for batch in batches:
            staged.write(batch)
        return staged.complete(replaced)
