"""A stream's micro-batch, written by the function of its foreachBatch: exactly once, as by the streaming sink."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame

from laketier.config import LakeConfig
from laketier.registry import naming_commands
from laketier.spark.checkpoint import Checkpoint, Unreadable
from laketier.spark.classic import is_connect
from laketier.spark.data_source import require_stream_keys
from laketier.spark.epochs import after_previous, epoch_token, plan_epoch
from laketier.spark.lanes import drive, stage_frame, write_mode
from laketier.spark.overwriting import refuse_dynamic_session
from laketier.spark.running_query import RunningQuery, files_hash, running_query
from laketier.spark.schema import table_schema
from laketier.spark.target import as_config, round_log, warn_once
from laketier.spi import ConfigError, Decision, Gap, Token, WatermarkLost, WriteMode
from laketier.tiering import RoundResult, TieringRound

_IN_FULL = (
    "each batch of this query holds its whole result, as its output mode is complete, and is added to those of earlier "
    'batches. To keep the newest alone: write_batch(…, mode="overwrite")'
)


def write_batch(
    df: DataFrame,
    batch_id: int,
    config: LakeConfig | Mapping[str, Any],
    *,
    checkpoint: str | None = None,
    mode: str = "append",
) -> RoundResult:
    """Write ``df`` as the epoch ``batch_id`` of its query, by mapInArrow and under our Arrow setting. For the function
    that `foreachBatch` calls; also in threads that it starts.

    Call it for each table in each batch, with ``df.limit(0)`` where a table gets no rows: a table that misses a batch
    refuses the next one. Needs ``lake.pipeline``, one per call within a batch and table, and no ``lake.epoch``. Run and
    content come from the query's checkpoint, as with ``writeStream.format("laketier")``: a replayed batch is written
    once, and a deleted checkpoint, or a restored one with other rows, is refused. The running query tells where its
    checkpoint is; on Spark Connect nothing does, and ``checkpoint`` must be given. ``mode``: ``append`` or
    ``overwrite``.

    Raises `ConfigError` for a call that is no batch of a running query, and for a second call in one batch with the
    same table and pipeline and other rows; else as `laketier.spark.write`.
    """
    config = as_config(config, df.sparkSession)
    require_stream_keys(config)
    chosen = write_mode(mode, config)
    query = running_query(df)
    if query is not None and query.output_mode == "Complete" and chosen is WriteMode.APPEND:
        warn_once(round_log(__name__, config, batch_id), "complete", query.id, str(config.table), message=_IN_FULL)
    found, location = _checkpoint(config, query, checkpoint, df)
    _require_newest(config, found, batch_id)
    with naming_commands(config):
        token = epoch_token(config, found, None if query is None else query.id, batch_id)
    schema = table_schema(df.schema)
    start = "" if query is None else query.run_id
    if not start:  # nothing tells whether the query was started again since the batch before
        token = after_previous(token, found)
    with naming_commands(config, token), _asking_for_each_batch():
        planned = plan_epoch(config, schema, chosen, batch_id, location, lambda: token, found, start)
    with naming_commands(config, token), _once(df, config, planned.table_uuid, token, start):
        if not planned.begun.done:
            refuse_dynamic_session(df.sparkSession, chosen, str(config.table), partitioned=planned.partitioned)
        tiering = TieringRound(planned.factory, token=token, mode=chosen)

        def run(staged: Accumulator[list[bytes]] | None) -> list[bytes]:
            return stage_frame(df, schema, planned.factory, chosen, planned.begun.attempts_after, staged)

        # Whether the epoch is there was looked up where that may be; `commit` decides again in any case.
        return drive(
            df.sparkSession,
            tiering,
            run,
            config,
            batch_id,
            lambda: Decision.DONE if planned.begun.done else Decision.PROCEED,
        )


@contextmanager
def _asking_for_each_batch() -> Iterator[None]:
    """A function that passes over tables for which a batch has no rows leaves a gap, as lost epochs would."""
    try:
        yield
    except (Gap, WatermarkLost) as error:
        error.fix = (
            f"{error.fix} Each table gets each batch of its query: where the function has no rows for one, it calls "
            "write_batch with df.limit(0)."
        )
        raise


def _checkpoint(
    config: LakeConfig, query: RunningQuery | None, given: str | None, df: DataFrame
) -> tuple[Checkpoint | Unreadable, str]:
    location = given or (None if query is None else query.checkpoint)
    if location is None:
        on_connect = is_connect(df.sparkSession)
        raise ConfigError(
            "the query of this batch is unknown",
            where=str(config.table),
            why="on Spark Connect a foreachBatch can't ask for its query" if on_connect else "no running query has it",
            fix="Call write_batch in the function that foreachBatch calls, with the DataFrame that it gets or one made "
            "from it; give the query's own checkpoint as checkpoint=… where that does not help.",
        )
    found = Checkpoint.open(location)
    if given is not None and query is not None and isinstance(found, Checkpoint) and found.run != query.id:
        raise ConfigError(
            f"the checkpoint {given} is another query's",
            where=str(config.table),
            why=f"its id is {found.run}, and this query's is {query.id}",
            fix="Leave checkpoint out: the running query tells where it is.",
        )
    return found, location


def _require_newest(config: LakeConfig, checkpoint: Checkpoint | Unreadable, batch_id: int) -> None:
    """While a batch runs, it is the newest one that the checkpoint knows."""
    if isinstance(checkpoint, Unreadable):
        return
    newest = checkpoint.latest_epoch()
    if newest != batch_id:
        raise ConfigError(
            f"batch {batch_id} is not the one that runs",
            where=str(config.table),
            why=f"the newest one in the checkpoint {checkpoint.location} is {newest}",
            fix="Give write_batch the batch id that foreachBatch hands to the function.",
        )


@dataclass(frozen=True)
class _Batch:
    """What the newest batch of a run has written, by table and pipeline: the plan, and its files. ``start``: of the
    query."""

    start: str
    epoch: int
    written: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)


_batches: dict[str, _Batch] = {}
"""By run."""
_lock = threading.Lock()


@contextmanager
def _once(df: DataFrame, config: LakeConfig, table_uuid: str, token: Token, start: str) -> Iterator[None]:
    """Refuse a second, different write under one name in one batch: it would be taken for a replay of the first, and
    its rows dropped, also where the way to the table is spelled otherwise. The same plan of the same files again is a
    retry: a plan tells their folder alone, and others may be there by now."""
    name = (table_uuid, str(config.table), token.pipeline)
    mine = (df.semanticHash(), files_hash(df))
    with _lock:
        batch = _batches.get(token.run)
        if batch is None or (batch.start, batch.epoch) != (start, token.epoch):
            batch = _batches[token.run] = _Batch(start, token.epoch)  # nothing is ever compared with an older one
        before = batch.written.get(name)
        if before is not None and before != mine:
            raise ConfigError(
                f"batch {token.epoch} is written to this table a second time, with other rows, as pipeline "
                f"{token.pipeline!r}",
                where=str(config.table),
                why="the table would take the second write for a replay of the first",
                fix="Write all rows of the batch in one call, or give each call a lake.pipeline of its own: also one "
                "for a copy of the table, which has the identity of the first.",
            )
        batch.written[name] = mine
    try:
        yield
    except BaseException:
        with _lock:
            if batch.written.get(name) == mine and before != mine:
                del batch.written[name]
        raise
