"""Epoch after epoch into one table, from one process and without an engine."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from laketier.config import LakeConfig
from laketier.registry import open_lake
from laketier.spi import (
    FIRST_EPOCH,
    ConfigError,
    Decision,
    LakeTieringFactory,
    OpenFilesSlot,
    Token,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tables import changed, prepare_table, trusted
from laketier.tiering import pipelines
from laketier.tiering.open_files import finish_open_files, is_crowded
from laketier.tiering.publish import RoundResult
from laketier.tiering.round import TieringRound, write_task

log = logging.getLogger(__name__)

BATCH_RUN = "batch"
"""The ``run`` of batches: their epochs are numbered by the user, in no progress log."""


class EpochWriter:
    """Writes epochs of ``lake.pipeline``, numbered from 0 by one, each exactly once. One thread.

    Files may stay open from one epoch to the next, where the format's options ask for it: each epoch's rows are visible
    to laketier's readers at its commit, and to other readers once their file is finished. As a context manager it
    finishes all files at the end, unless the block raises.
    """

    def __init__(self, config: LakeConfig, schema: pa.Schema, *, fence: int = 0) -> None:
        if config.pipeline is None or config.epoch is not None:
            raise ConfigError(
                "a writer of epochs needs lake.pipeline, and lake.epoch is for single batches",
                where=str(config.table),
                fix="Set lake.pipeline, remove lake.epoch, and give each epoch to `EpochWriter.write`.",
            )
        if not isinstance(schema, pa.Schema):
            raise ConfigError(
                f"the schema of a writer is one of Arrow, and this is {type(schema).__name__}",
                where=str(config.table),
                fix="Give pyarrow.schema([(name, type), …]).",
            )
        Token(config.pipeline, BATCH_RUN, FIRST_EPOCH, fence)  # refuses what can be no fence before anything is made
        self._config = config
        self._pipeline: str = config.pipeline
        self._schema = schema
        self._fence = fence
        self._lake = open_lake(config)
        self._slot = OpenFilesSlot()

    @property
    def next_epoch(self) -> int:
        """The epoch after the last one that the table has. Reads the table. Raises as `TableState.watermark`."""
        prepare_table(self._lake, self._schema)
        watermark = pipelines.show(self._lake.current_state(), self._pipeline)
        return FIRST_EPOCH if watermark is None or watermark.forgotten else watermark.token.epoch + 1

    def write(self, epoch: int, batches: Iterable[pa.RecordBatch], *, content: str | None = None) -> RoundResult:
        """Write the rows of an epoch, and publish them. An epoch that is in the table already is left as it is.

        Args:
            epoch: Its number.
            batches: Its rows. Read only where the epoch is not in the table yet.
            content: What it holds, for example a digest or a file's name. Another one under the same epoch is refused.

        Returns:
            What became of it.

        Raises:
            Refused: The epoch must not be published; see `TieringRound.commit`. After `Overtaken`, write it again.
            ConfigError: ``epoch`` or ``content`` has another type.
            IncompatibleData: ``batches`` has something else than record batches, or they do not fit the table.
            LaketierError: As the format raises it.
        """
        token = Token(self._pipeline, BATCH_RUN, epoch, self._fence, content)
        with trusted(self._config):
            table = prepare_table(self._lake, self._schema, token=token)
            factory = self._lake.tiering_factory(table)
            tiering = TieringRound(factory, token=token)
            try:
                if tiering.begin(self._lake.state(table)) is Decision.DONE:
                    return tiering.confirm_done()
                context = WriterInitContext(new_attempt_id(tiering.attempts_after), open_files=self._slot_now(factory))
                message = write_task(factory, batches, context)
            except BaseException:
                tiering.close()
                raise
            done = tiering.commit_messages([message])
        changed(self._config)
        return done

    def finish_due(self) -> RoundResult | None:
        """Finish files that got old though no rows came. Call it now and then while there is nothing to write.

        Returns:
            The commit. None where nothing is due.

        Raises:
            LaketierError: As `write`. Its files are then finished by the next commit.
        """
        return self._finish(ending=False)

    def close(self) -> None:
        """Finish all files. Raises as `finish_due`, after giving up what it could not finish. May be called twice."""
        try:
            self._finish(ending=True)
        finally:
            self._slot.close()

    def _slot_now(self, factory: LakeTieringFactory[Any]) -> OpenFilesSlot:
        """Where the process has few descriptors left, a writer that has nothing open leaves nothing open, either."""
        if factory.leaves_files_open and self._slot.is_empty and is_crowded():
            log.info("%s: its files don't stay open: the process has many open (ulimit -n)", self._config.table)
            crowded = OpenFilesSlot()
            crowded.ending = True
            return crowded
        return self._slot

    def _finish(self, *, ending: bool) -> RoundResult | None:
        if self._slot.is_empty:
            return None
        done = finish_open_files(self._factory(), self._slot, ending=ending)
        changed(self._config)
        return done

    def _factory(self) -> LakeTieringFactory[Any]:
        return self._lake.tiering_factory(self._lake.load_table())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._slot.close()
