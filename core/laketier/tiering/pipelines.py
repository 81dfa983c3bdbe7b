"""The ways out of a refusal: show, adopt, rewind and forget a pipeline's watermark in a table.

Each is a commit of its own, a compare-and-set without files. They are for people, who say by them that they know
which rows are in the table; no round ever calls them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from laketier.spi import (
    CommitterInitContext,
    ConfigError,
    Conflict,
    LakeTieringFactory,
    RolledBack,
    Token,
    UnknownOutcome,
    Watermark,
    WatermarkLost,
    new_attempt_id,
)
from laketier.spi.storage_errors import naming_storage_errors

_ATTEMPTS = 20


def show(factory: LakeTieringFactory[Any], pipeline: str) -> Watermark | None:
    """The watermark of ``pipeline``, None when the table does not know it. Raises `RolledBack`."""
    committer = factory.create_committer(CommitterInitContext(commit_id=new_attempt_id(), pipeline=pipeline))
    try:
        with naming_storage_errors("the table was read"):
            return committer.open().watermark(pipeline)
    finally:
        committer.close()


def adopt(factory: LakeTieringFactory[Any], pipeline: str, *, run: str, epoch: int) -> Watermark:
    """Declare that the table holds all rows up to ``epoch`` of ``run``: the next round may be ``epoch + 1``."""

    def change(last: Watermark | None) -> Token:
        fence = 0 if last is None else last.token.fence
        return Token(pipeline, run, epoch, fence)

    return set_watermark(factory, pipeline, change)


def rewind(factory: LakeTieringFactory[Any], pipeline: str, *, epoch: int) -> Watermark:
    """Go back to ``epoch`` of the same run, after the rows of later epochs were removed. Raises `ConfigError` when
    the table is not past it, and `WatermarkLost` when it does not know the pipeline."""

    def change(last: Watermark | None) -> Token:
        if last is None or last.forgotten:
            raise WatermarkLost(f"the table does not know pipeline {pipeline!r}", fix="Use `laketier pipeline adopt`.")
        if epoch >= last.token.epoch:
            raise ConfigError(
                f"the table is at epoch {last.token.epoch}, so it can't go back to {epoch}",
                fix="Use `laketier pipeline adopt` to go forward.",
            )
        return replace(last.token, epoch=epoch, content=None, source=None)

    return set_watermark(factory, pipeline, change)


def forget(factory: LakeTieringFactory[Any], pipeline: str) -> Watermark:
    """Make the table treat the pipeline as new: its next round must be the first epoch."""

    def change(last: Watermark | None) -> Token:
        if last is None or last.forgotten:
            raise WatermarkLost(f"the table does not know pipeline {pipeline!r}", fix="There is nothing to forget.")
        return last.token

    return set_watermark(factory, pipeline, change, forgotten=True)


def set_watermark(
    factory: LakeTieringFactory[Any],
    pipeline: str,
    change: Callable[[Watermark | None], Token],
    *,
    forgotten: bool = False,
    after_rollback: Callable[[], Token] | None = None,
) -> Watermark:
    """``change`` makes the new token from the last watermark; ``after_rollback``, if given, makes it when that one left
    the table's history."""
    commit_id = new_attempt_id()
    committer = factory.create_committer(CommitterInitContext(commit_id=commit_id, pipeline=pipeline))
    last_error: Exception | None = None
    try:
        for _ in range(_ATTEMPTS):
            with naming_storage_errors("the table was read"):
                state = committer.open()
                rolled_back = False
                try:
                    last = state.watermark(pipeline)
                except RolledBack:
                    # People adopt just because of that: what the old watermark said no longer counts.
                    last, rolled_back = None, True
            if last is not None and last.commit_id == commit_id:
                return last
            token = after_rollback() if rolled_back and after_rollback is not None else change(last)
            watermark = Watermark(token, commit_id, committed_at=time.time_ns() // 1_000_000, forgotten=forgotten)
            try:
                committer.publish(state, [], watermark)
            except Conflict as error:
                last_error = error
            except Exception as error:  # noqa: BLE001 - unknown: the next pass reads the table
                last_error = error
            else:
                return watermark
    finally:
        committer.close()
    raise UnknownOutcome(
        f"the watermark of pipeline {pipeline!r} could not be set in {_ATTEMPTS} attempts",
        why=str(last_error),
        fix="Run `laketier pipeline show` to see where it stands.",
    ) from last_error
