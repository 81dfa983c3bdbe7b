"""``df.write.format("laketier")``: one round per job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from laketier.config import LakeConfig
from laketier.spark.arrow_batches import ADVICE
from laketier.spark.epochs import begun
from laketier.spark.messages import LakeCommitMessage, answer, complete, present, stage, task_setting
from laketier.spark.overwriting import OVERWRITE_MODE, is_partitioned, refuse_dynamic
from laketier.spark.refusals import said_once
from laketier.spark.schema import table_schema
from laketier.spark.target import batch_token, prepare, round_log, warn_at_least_once, warn_once, warn_unread
from laketier.spi import WriteMode, new_attempt_id
from laketier.tables import changed, distrust, trusted
from laketier.tiering.round import TieringRound

ROWS_WORTH_ADVICE = 100_000

FOREACH_BATCH = (
    "this batch is written in a stream's foreachBatch, and lake.pipeline and lake.epoch are all that names it: whether "
    "the stream's checkpoint was deleted or restored can't be told, and then a batch with other rows would be taken "
    "for the one that is in the table. Write it with laketier.spark.write_batch(df, batch_id, …)"
)


class LakeBatchWriter(DataSourceArrowWriter):
    """Made on the driver, where it prepares the table and decides; then pickled to the tasks and to the commit, so
    all of them share one commit id."""

    def __init__(self, config: LakeConfig, schema: StructType, *, overwrite: bool) -> None:
        self._config = config
        self._mode = WriteMode.OVERWRITE if overwrite else WriteMode.APPEND
        self._token = batch_token(config)
        self._commit_id = new_attempt_id()
        with said_once(config, self._token), trusted(config):
            target = prepare(config, table_schema(schema), self._mode, self._token)
            self._factory, self._partitioned = target.factory, is_partitioned(target.table)
            if self._token is None:
                warn_at_least_once(round_log(__name__, config), config)
            found = begun(self._round(), target.state)
            self._done, self._attempts_after = found.done, found.attempts_after

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Executor. Stages the partition, or nothing at all when the epoch is in the table."""
        if self._done:
            return answer(None)
        with said_once(self._config, self._token):  # where it is planned, nothing tells what the session is set to
            table = str(self._config.table)
            refuse_dynamic(task_setting(OVERWRITE_MODE), self._mode, table, partitioned=self._partitioned)
        return answer(
            stage(
                self._factory,
                iterator,
                mode=self._mode,
                attempts_after=self._attempts_after,
            )
        )

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Driver, another process than the one that planned. Raises what `TieringRound.commit` raises."""
        answers = complete(messages, str(self._config.table))
        log = round_log(__name__, self._config, self._config.epoch)
        if self._token is not None and any(a.query_id is not None for a in answers):
            warn_once(log, "foreachBatch", str(self._config.table), message=FOREACH_BATCH)
        tiering = self._round()
        with said_once(self._config, self._token), trusted(self._config):
            result = tiering.confirm_done() if self._done else tiering.commit_messages(staged(answers))
        changed(self._config)
        log.info("%s: %d rows, %d files, %d bytes", result.outcome.value, result.rows, result.files, result.bytes)
        warn_unread(log, self._token, result)
        if result.rows >= ROWS_WORTH_ADVICE and any(a.costly for a in answers):
            warn_once(log, "arrow", message=ADVICE)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Driver. Spark also comes here after a commit whose answer was lost: see `commit_was_called`."""
        distrust(self._config)
        self._round().abort_messages(staged(present(messages)), commit_was_called=commit_was_called(messages))

    def _round(self) -> TieringRound:
        return TieringRound(self._factory, token=self._token, mode=self._mode, commit_id=self._commit_id)


def commit_was_called(messages: Sequence[WriterCommitMessage | None]) -> bool:
    """False only when that is certain: Spark commits after every task has answered, and gives None for one that
    has not."""
    return all(message is not None for message in messages)


def staged(answers: Sequence[LakeCommitMessage]) -> list[bytes]:
    """The packed write results among the answers."""
    return [a.result for a in answers if a.result is not None]
