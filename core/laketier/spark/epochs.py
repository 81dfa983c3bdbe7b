"""An epoch of a streaming query, before its tasks run: its name, its table, and whether it is in the table already."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from laketier.config import LakeConfig
from laketier.spark.checkpoint import Checkpoint, Unreadable
from laketier.spark.overwriting import is_partitioned
from laketier.spark.target import prepare, round_log, warn_once
from laketier.spi import (
    FIRST_EPOCH,
    ConfigError,
    CorruptTable,
    Decision,
    LakeTieringFactory,
    TableState,
    Token,
    WriteMode,
)
from laketier.tables import distrust, trusted
from laketier.tiering.round import TieringRound

_REUSE_SECONDS = 60.0
"""How long a process uses a table as it loaded it, while epochs follow each other."""
_REUSE_EPOCHS = 10
"""For how many of them: a committer looks through all commits since the table was loaded (`WriteResult.after`)."""


@dataclass(frozen=True)
class Begun:
    """The state of a round at its beginning. ``done``: it is in the table, and nothing is to be written.
    ``attempts_after``: see `TieringRound`."""

    done: bool
    attempts_after: int


@dataclass(frozen=True)
class PlannedEpoch:
    """The data that the tasks of an epoch need. ``partitioned``: the table has partitions. ``table_uuid``: which table
    it is, however the configuration spells the way to it."""

    factory: LakeTieringFactory[Any]
    begun: Begun
    partitioned: bool
    table_uuid: str


@dataclass(frozen=True)
class _Prepared:
    config: LakeConfig
    schema: pa.Schema
    mode: WriteMode
    start: str
    epoch: int
    loaded_at: float
    loaded_for: int
    planned: PlannedEpoch


_prepared: dict[tuple[str, ...], _Prepared] = {}


def plan_epoch(
    config: LakeConfig,
    schema: pa.Schema,
    mode: WriteMode,
    epoch: int,
    query: str,
    token: Callable[[], Token],
    checkpoint: Checkpoint | Unreadable,
    start: str = "",
) -> PlannedEpoch:
    """Prepare the table and look whether the epoch is there; an epoch that follows the one that this process planned
    before uses the table as it was loaded then. ``query`` tells queries apart, and ``start`` the starts of one, where
    the engine names them. Of an epoch that is planned once more, the attempt before came to nothing, and so nothing is
    used that was kept. The first epoch of a start is also held against the one before, as ``checkpoint`` tells it.
    Raises what `prepare` raises, and `Refused`.
    """
    key = (config.warehouse, str(config.table), str(config.pipeline), query)
    last = _prepared.get(key)
    now = time.monotonic()
    if (
        last is not None
        and last.epoch + 1 == epoch
        and (last.config, last.mode, last.start) == (config, mode, start)
        and last.schema.equals(schema, check_metadata=True)
        and now - last.loaded_at < _REUSE_SECONDS
        and epoch - last.loaded_for < _REUSE_EPOCHS
    ):
        # No restart since the epoch before, so this one can't be in the table; commit decides again anyway.
        planned = replace(last.planned, begun=replace(last.planned.begun, done=False))
        now, loaded_for = last.loaded_at, last.loaded_for
    else:
        loaded_for = epoch
        if last is not None and epoch <= last.epoch:
            distrust(config)
        named = after_previous(token(), checkpoint)
        with trusted(config):
            target = prepare(config, schema, mode, named)
            tiering = TieringRound(target.factory, token=named, mode=mode)
            planned = PlannedEpoch(
                target.factory,
                begun(tiering, target.state),
                is_partitioned(target.table),
                target.table.table_uuid,
            )
    _prepared[key] = _Prepared(config, schema, mode, start, epoch, now, loaded_for, planned)
    return planned


_starts: dict[tuple[str, ...], str] = {}


def committed_token(
    config: LakeConfig, checkpoint: Checkpoint | Unreadable, run: str | None, epoch: int, start: str | None
) -> Token:
    """`epoch_token` for the commit. The first epoch of a start that a process commits is held against the one before:
    of a query that was started again at once, perhaps with a checkpoint from elsewhere, `plan_epoch` may have used what
    it kept from before. ``start``: which start of the query it is; None where nothing tells."""
    token = epoch_token(config, checkpoint, run, epoch)
    key = (config.warehouse, str(config.table), token.pipeline, token.run)
    if start is not None and _starts.get(key) == start:
        return token
    if start is not None:
        _starts[key] = start
    return after_previous(token, checkpoint)


def after_previous(token: Token, checkpoint: Checkpoint | Unreadable) -> Token:
    """The same token with the content of the epoch before, where the checkpoint still tells it."""
    if isinstance(checkpoint, Unreadable) or token.content is None or token.epoch == FIRST_EPOCH:
        return token
    try:
        previous = checkpoint.content(token.epoch - 1)
    except (CorruptTable, FileNotFoundError):  # Spark has deleted what it tells by now
        return token
    return token if isinstance(previous, Unreadable) else replace(token, previous=previous)


def begun(tiering: TieringRound, state: TableState) -> Begun:
    """Begin a round that is committed elsewhere. Driver."""
    try:
        done = tiering.begin(state) is Decision.DONE
        return Begun(done, tiering.attempts_after)
    finally:
        tiering.close()


def epoch_token(config: LakeConfig, checkpoint: Checkpoint | Unreadable, run: str | None, epoch: int) -> Token:
    """The name of an epoch: run and content from the checkpoint. ``run``: the query's id, where the engine says it.

    Where the checkpoint is out of reach, the engine's word for the run has to do, and a warning says, once, what that
    gives up. Raises `ConfigError` where nothing tells the run.
    """
    assert config.pipeline is not None
    weak: Unreadable | None = None
    content: str | None = None
    if isinstance(checkpoint, Checkpoint) and run in (None, checkpoint.run):
        run = checkpoint.run
        found = checkpoint.content(epoch)
        if isinstance(found, Unreadable):
            weak = found
        else:
            content = found
    elif isinstance(checkpoint, Checkpoint):
        weak = Unreadable(f"{checkpoint.location} is another query's")
    else:
        weak = checkpoint
    if run is None:
        assert weak is not None
        raise ConfigError(
            "the stream's progress can't be identified", where=str(config.table), why=weak.why, fix=f"{weak.fix}."
        )
    if weak is not None:
        warn_once(
            round_log(__name__, config, epoch),
            "weak token",
            run,
            message=f"only the number identifies an epoch, as {weak.why}: after an older checkpoint is "
            f"restored, an epoch with other rows and the same number would be skipped. {weak.fix}",
        )
    return Token(pipeline=config.pipeline, run=run, epoch=epoch, content=content)
