"""``df.writeStream.format("laketier")``: one round per micro-batch.

Spark makes this writer three times per epoch, each time from the options alone: to plan the tasks, to commit, or to
abort. Only the planned one is ever pickled, so pickling is where the table is prepared. Nothing tells the planned one
its epoch; where the checkpoint can be read, it is the newest one there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from laketier.config import LakeConfig
from laketier.spark.arrow_batches import ADVICE
from laketier.spark.batch_writer import ROWS_WORTH_ADVICE, commit_was_called, decided, staged
from laketier.spark.checkpoint import Checkpoint, Unreadable
from laketier.spark.messages import answer, present, stage, task_epoch
from laketier.spark.report import EpochProgress, leave_report
from laketier.spark.schema import table_schema
from laketier.spark.target import load, prepare, round_log, say_once
from laketier.spi import ConfigError, LakeTieringFactory, Outcome, Token, WriteMode
from laketier.tiering.publish import RoundResult
from laketier.tiering.round import TieringRound

_REUSE_SECONDS = 60.0
"""How long the planning process uses a table as it loaded it, while epochs follow each other."""


@dataclass(frozen=True)
class _Prepared:
    config: LakeConfig
    schema: StructType
    epoch: int
    loaded_at: float
    factory: LakeTieringFactory[Any]
    attempts_after: int


_prepared: dict[tuple[str, str, str], _Prepared] = {}


class LakeStreamWriter(DataSourceStreamArrowWriter):
    """Carries no state from one epoch to the next: the checkpoint and the table hold all of it."""

    def __init__(
        self,
        config: LakeConfig,
        schema: StructType,
        *,
        overwrite: bool,
        checkpoint: str | None,
        report: str | None = None,
    ) -> None:
        self._config = config
        self._schema = schema
        self._mode = WriteMode.OVERWRITE if overwrite else WriteMode.APPEND
        self._checkpoint = checkpoint
        self._report = report
        self._factory: LakeTieringFactory[Any] | None = None
        self._done_epoch: int | None = None
        self._attempts_after = 0

    # -- planning: driver, before the tasks ---------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        if self._factory is None:
            self._plan()
        return self.__dict__

    def _plan(self) -> None:
        checkpoint = self._open_checkpoint()
        epoch = None if isinstance(checkpoint, Unreadable) else checkpoint.latest_epoch()
        if isinstance(checkpoint, Unreadable) or epoch is None:
            self._factory = prepare(self._config, table_schema(self._schema), self._mode).factory
            self._begun(None)
            return
        key = (self._config.warehouse, str(self._config.table), str(self._checkpoint))
        last = _prepared.get(key)
        loaded_at = time.monotonic()
        if last is not None and self._follows(last, epoch, loaded_at):
            # No restart since the epoch before, so this one can't be in the table; commit decides again anyway.
            self._factory, self._attempts_after, loaded_at = last.factory, last.attempts_after, last.loaded_at
        else:
            token = self._token(checkpoint, epoch)
            self._factory = prepare(self._config, table_schema(self._schema), self._mode, token).factory
            if self._begun(token) is Outcome.DONE:
                self._done_epoch = epoch
        _prepared[key] = _Prepared(self._config, self._schema, epoch, loaded_at, self._factory, self._attempts_after)

    def _begun(self, token: Token | None) -> Outcome:
        assert self._factory is not None
        tiering = TieringRound(self._factory, token=token, mode=self._mode)
        outcome = decided(tiering)
        self._attempts_after = tiering.attempts_after
        return outcome

    def _follows(self, last: _Prepared, epoch: int, now: float) -> bool:
        return (
            last.epoch + 1 == epoch
            and last.config == self._config
            and last.schema == self._schema
            and now - last.loaded_at < _REUSE_SECONDS
        )

    # -- tasks: executors ---------------------------------------------------------------------------------------

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stages the partition, or nothing at all when the epoch is in the table."""
        assert self._factory is not None
        epoch = task_epoch()
        if epoch is not None and epoch == self._done_epoch:
            return answer(None, self._factory)
        result = stage(self._factory, iterator, epoch=epoch, mode=self._mode, attempts_after=self._attempts_after)
        return answer(result, self._factory)

    # -- the end of the round: driver, in a process of its own --------------------------------------------------

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Raises what `TieringRound.commit` raises; the query then ends, and a restart runs the epoch again."""
        started = time.monotonic()
        log = round_log(__name__, self._config, batchId)
        answers = present(messages)
        factory = next((a.factory for a in answers if a.factory is not None), None) or load(self._config).factory
        query_id = next((a.query_id for a in answers if a.query_id is not None), None)
        tiering = TieringRound(factory, token=self._commit_token(query_id, batchId), mode=self._mode)
        done = any(a.result is None for a in answers)
        result = tiering.confirm_done() if done else tiering.commit_messages(staged(answers))
        log.info("%s: %d rows, %d files, %d bytes", result.ending.value, result.rows, result.files, result.bytes)
        if result.rows >= ROWS_WORTH_ADVICE and any(a.costly for a in answers):
            say_once(log, "arrow", message=ADVICE)
        self._leave_report(batchId, result, time.monotonic() - started)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Spark also comes here after a commit whose answer was lost: see `commit_was_called`."""
        answers = present(messages)
        results = staged(answers)
        if commit_was_called(messages) or not results:
            round_log(__name__, self._config, batchId).warning("the epoch was given up; nothing is deleted")
            return
        factory = next((a.factory for a in answers if a.factory is not None), None) or load(self._config).factory
        TieringRound(factory, mode=self._mode).abort_messages(results, commit_was_called=False)

    def _commit_token(self, query_id: str | None, epoch: int) -> Token:
        checkpoint = self._open_checkpoint()
        if isinstance(checkpoint, Checkpoint) and query_id in (None, checkpoint.run):
            return self._token(checkpoint, epoch)
        if isinstance(checkpoint, Checkpoint):
            checkpoint = Unreadable(f"{self._checkpoint} is another query's")
        if query_id is None:
            raise ConfigError(
                "the stream's progress can't be identified",
                where=str(self._config.table),
                why=checkpoint.why,
                fix=f"{checkpoint.fix}.",
            )
        self._say_weak(query_id, epoch, checkpoint)
        return Token(pipeline=self._pipeline, run=query_id, epoch=epoch)

    def _token(self, checkpoint: Checkpoint, epoch: int) -> Token:
        content = checkpoint.content(epoch)
        if isinstance(content, Unreadable):
            self._say_weak(checkpoint.run, epoch, content)
            return Token(pipeline=self._pipeline, run=checkpoint.run, epoch=epoch)
        return Token(pipeline=self._pipeline, run=checkpoint.run, epoch=epoch, content=content)

    def _say_weak(self, run: str, epoch: int, unknown: Unreadable) -> None:
        say_once(
            round_log(__name__, self._config, epoch),
            "weak token",
            run,
            message=f"epochs are told apart by their number alone, as {unknown.why}: after an older checkpoint is "
            f"restored, other rows under the same number would be taken for the ones that are here. {unknown.fix}",
        )

    @property
    def _pipeline(self) -> str:
        assert self._config.pipeline is not None
        return self._config.pipeline

    def _open_checkpoint(self) -> Checkpoint | Unreadable:
        if self._checkpoint is None:
            return Unreadable("the checkpoint is a session setting (spark.sql.streaming.checkpointLocation), no option")
        return Checkpoint.open(self._checkpoint)

    def _leave_report(self, epoch: int, result: RoundResult, seconds: float) -> None:
        if self._report is None:
            return
        progress = EpochProgress(
            table=str(self._config.table),
            pipeline=self._pipeline,
            epoch=epoch,
            ending=result.ending.value,
            rows=result.rows,
            files=result.files,
            bytes=result.bytes,
            seconds=seconds,
            commit_seconds=seconds,
        )
        leave_report(self._report, progress)
