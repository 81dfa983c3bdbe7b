"""``df.writeStream.format("laketier")``: one round per micro-batch.

Spark makes this writer three times per epoch, each time from the options alone: to plan the tasks, to commit, or to
abort (see `laketier.spark.planning`). Nothing tells the planned one its epoch; where the checkpoint can be read, it is
the newest one there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from laketier.config import LakeConfig
from laketier.spark.arrow_batches import ADVICE
from laketier.spark.batch_writer import ROWS_WORTH_ADVICE, commit_was_called, staged
from laketier.spark.checkpoint import Checkpoint, Unreadable
from laketier.spark.epochs import begun, committed_token, epoch_token, plan_epoch
from laketier.spark.messages import answer, complete, present, stage, task_epoch
from laketier.spark.planning import PlannedWhenPickled
from laketier.spark.refusals import said_once
from laketier.spark.report import EpochProgress, append_report
from laketier.spark.schema import table_schema
from laketier.spark.target import load, prepare, round_log, warn_once
from laketier.spark.triggers import continuous_refused, refuse_continuous_task
from laketier.spi import LakeTieringFactory, Token, WriteMode
from laketier.tables import trusted
from laketier.tiering.publish import RoundResult
from laketier.tiering.round import TieringRound


class LakeStreamWriter(PlannedWhenPickled, DataSourceStreamArrowWriter):
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

    @property
    def is_planned(self) -> bool:
        return self._factory is not None

    def plan(self) -> None:
        """Prepare the table for the epoch that the checkpoint begins, and see whether it is there already."""
        checkpoint = self._open_checkpoint()
        schema = table_schema(self._schema)
        if isinstance(checkpoint, Unreadable):
            with trusted(self._config):
                target = prepare(self._config, schema, self._mode)
                round_ = TieringRound(target.factory, mode=self._mode)
                self._factory, self._attempts_after = target.factory, begun(round_, target.state).attempts_after
            return
        epoch = checkpoint.latest_epoch()
        if epoch is None:  # Spark writes a micro-batch there before it plans its tasks
            raise continuous_refused(str(self._config.table))
        token = partial(self._micro_batch, checkpoint, epoch)
        planned = plan_epoch(self._config, schema, self._mode, epoch, checkpoint.location, token, checkpoint)
        self._factory, self._attempts_after = planned.factory, planned.begun.attempts_after
        if planned.begun.done:
            self._done_epoch = epoch

    def _micro_batch(self, checkpoint: Checkpoint, epoch: int) -> Token:
        if not checkpoint.is_micro_batch(epoch):
            raise continuous_refused(str(self._config.table))
        return epoch_token(self._config, checkpoint, None, epoch)

    # -- tasks: executors ---------------------------------------------------------------------------------------

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stages the partition, or nothing at all when the epoch is in the table."""
        assert self._factory is not None
        refuse_continuous_task(str(self._config.table))
        epoch = task_epoch()
        if epoch is not None and epoch == self._done_epoch:
            return answer(None, self._factory)
        result = stage(self._factory, iterator, mode=self._mode, attempts_after=self._attempts_after)
        return answer(result, self._factory)

    # -- the end of the round: driver, in a process of its own --------------------------------------------------

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Raises what `TieringRound.commit` raises; the query then ends, and a restart runs the epoch again."""
        with said_once(self._config), trusted(self._config):
            self._commit(messages, batchId)

    def _commit(self, messages: Sequence[WriterCommitMessage | None], epoch: int) -> None:
        started = time.monotonic()
        log = round_log(__name__, self._config, epoch)
        answers = complete(messages, str(self._config.table))
        factory = next((a.factory for a in answers if a.factory is not None), None) or load(self._config).factory
        query_id = next((a.query_id for a in answers if a.query_id is not None), None)
        start = next((a.start for a in answers if a.start is not None), None)
        token = committed_token(self._config, self._open_checkpoint(), query_id, epoch, start)
        tiering = TieringRound(factory, token=token, mode=self._mode)
        done = any(a.result is None for a in answers)
        result = tiering.confirm_done() if done else tiering.commit_messages(staged(answers))
        log.info("%s: %d rows, %d files, %d bytes", result.outcome.value, result.rows, result.files, result.bytes)
        if result.rows >= ROWS_WORTH_ADVICE and any(a.costly for a in answers):
            warn_once(log, "arrow", message=ADVICE)
        self._append_report(epoch, result, time.monotonic() - started)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Spark also comes here after a commit whose answer was lost: see `commit_was_called`."""
        answers = present(messages)
        results = staged(answers)
        if commit_was_called(messages) or not results:
            round_log(__name__, self._config, batchId).warning("the epoch was given up; nothing is deleted")
            return
        factory = next((a.factory for a in answers if a.factory is not None), None) or load(self._config).factory
        TieringRound(factory, mode=self._mode).abort_messages(results, commit_was_called=False)

    def _open_checkpoint(self) -> Checkpoint | Unreadable:
        if self._checkpoint is None:
            return Unreadable("the checkpoint is a session setting (spark.sql.streaming.checkpointLocation), no option")
        return Checkpoint.open(self._checkpoint)

    def _append_report(self, epoch: int, result: RoundResult, seconds: float) -> None:
        if self._report is None:
            return
        progress = EpochProgress(
            table=str(self._config.table),
            pipeline=str(self._config.pipeline),
            epoch=epoch,
            outcome=result.outcome.value,
            rows=result.rows,
            files=result.files,
            bytes=result.bytes,
            seconds=seconds,
            commit_seconds=seconds,
        )
        append_report(self._report, progress)
