"""The table that a write goes to: prepared on the driver, before the first task."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from laketier.config import LakeConfig
from laketier.registry import Lake, configure, open_lake
from laketier.spark.running_query import working_folder
from laketier.spi import (
    ConfigError,
    LakeTieringFactory,
    TableInfo,
    TableState,
    Token,
    WriteMode,
    require_mode,
)
from laketier.spi.redaction import redacted
from laketier.tables import prepare_table
from laketier.tiering import RoundOutcome, RoundResult
from laketier.tiering.epochs import BATCH_RUN
from laketier.tiering.open_files import refuse_open_files


@dataclass(frozen=True)
class Target:
    """A table that is ready for rows, the factory for rounds into it, and the state in which it was found."""

    table: TableInfo
    factory: LakeTieringFactory[Any]
    lake: Lake

    @property
    def state(self) -> TableState:
        """For `TieringRound.begin`: the table as it was loaded, without another look."""
        return self.lake.state(self.table)


def as_config(config: LakeConfig | Mapping[str, Any], spark: SparkSession) -> LakeConfig:
    """A configuration from what our functions accept: one made before, or a mapping of ``lake.*`` keys.

    What is relative in a mapping starts from the folder in which the session's JVM runs, as all paths that Spark is
    given do: so ``df.write.format("laketier")``, which a process of that JVM plans, means the same table also after an
    `os.chdir` here.
    """
    if isinstance(config, LakeConfig):
        return config
    base = working_folder(spark)
    made = configure(config, base=base)
    here = os.getcwd()
    if base is not None and os.path.realpath(base) != os.path.realpath(here) and made != configure(config, base=here):
        warn_once(
            round_log(__name__, made),
            "relative",
            made.warehouse,
            message=f"a relative location starts from {base}, where the Spark session began, and not from {here}: the "
            f"warehouse is {redacted(made.warehouse)}. Give absolute paths",
        )
    return made


def prepare(config: LakeConfig, schema: pa.Schema, mode: WriteMode, token: Token | None = None) -> Target:
    """Open the lake, and create, check or evolve the table for rows of ``schema``. Driver. ``token``: the round that it
    is for, as in `prepare_table`.

    Raises `ConfigError`, `PluginError`, `TableError` and `FeatureNotSupported`: all that a user can mend.
    """
    _refuse_reading_keys(config)
    lake = open_lake(config)
    require_mode(config.format, lake.plugin.features, mode)
    table = prepare_table(lake, schema, token=token)
    factory = lake.tiering_factory(table)
    refuse_open_files(factory, where=str(config.table), why="Spark's tasks end with each epoch")
    return Target(table, factory, lake)


def load(config: LakeConfig) -> Target:
    """The table as it is. Driver. Raises `TableNotFound`."""
    lake = open_lake(config)
    table = lake.load_table()
    return Target(table, lake.tiering_factory(table), lake)


def _refuse_reading_keys(config: LakeConfig) -> None:
    for key, value in (("lake.snapshot-id", config.snapshot_id), ("lake.as-of", config.as_of)):
        if value is not None:
            raise ConfigError(f"{key} is for reading", where=config.origin, fix="Remove it from the write.")


def batch_token(config: LakeConfig, *, content: str | None = None) -> Token | None:
    """The token of a batch write; None without pipeline and epoch. Raises `ConfigError` for one without the other."""
    if config.pipeline is None and config.epoch is None:
        return None
    if config.pipeline is None or config.epoch is None:
        given, missing = ("lake.pipeline", "lake.epoch") if config.epoch is None else ("lake.epoch", "lake.pipeline")
        raise ConfigError(
            f"{given} is set without {missing}",
            where=config.origin,
            why="a batch is idempotent only when both name it",
            fix=f"Set {missing} as well (epochs count from 0 by one), or remove {given} for a write that a retry "
            "may repeat.",
        )
    return Token(pipeline=config.pipeline, run=BATCH_RUN, epoch=config.epoch, content=content)


class RoundLog(logging.LoggerAdapter[logging.Logger]):
    """Puts table, pipeline and epoch in front of each line."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """See `logging.LoggerAdapter`."""
        named = " ".join(f"{key}={value}" for key, value in (self.extra or {}).items() if value is not None)
        return f"[{named}] {msg}", kwargs


def round_log(name: str, config: LakeConfig, epoch: int | None = None) -> RoundLog:
    """The logger for one round."""
    return RoundLog(logging.getLogger(name), {"table": str(config.table), "pipeline": config.pipeline, "epoch": epoch})


_warned: set[tuple[str, ...]] = set()


def warn_once(log: RoundLog, *about: str, message: str) -> None:
    """Log a warning, once per process for the same ``about``."""
    if about not in _warned:
        _warned.add(about)
        log.warning(message)


def warn_unread(log: RoundLog, token: Token | None, result: RoundResult) -> None:
    """Warn that a batch was there already, where nothing tells whether its input is what it was: whoever runs the same
    epoch again with more rows would not hear that they are missing."""
    if token is None or token.content is not None or result.outcome is not RoundOutcome.ALREADY_THERE:
        return
    log.warning(
        "epoch %d is in the table already, with %d rows: no row of this batch was written, and whether it has others "
        "by now was not looked at. If it has, write those with lake.epoch %d",
        token.epoch, result.rows, token.epoch + 1,
    )  # fmt: skip


def warn_at_least_once(log: RoundLog, config: LakeConfig) -> None:
    """Warn that a batch without a pipeline and an epoch is not idempotent."""
    warn_once(
        log,
        "at-least-once",
        str(config.table),
        message="this batch has no lake.pipeline and lake.epoch: running it again will append its rows again",
    )
