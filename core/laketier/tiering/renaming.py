"""A pipeline that goes on under another name: its old name is closed in one commit, its new one opened in the next.

Between the two commits neither name may publish: a closed one is refused by `decide`, and the first round of one that
is about to be opened by `refuse_read_by_another`. So there is no moment in which both read the same rows.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from typing import Any

from laketier.spi import (
    ConfigError,
    LakeTieringFactory,
    TableState,
    Token,
    TokenMismatch,
    Watermark,
    WatermarkLost,
)
from laketier.tiering.pipelines import refuse_horizon, set_watermark, show


class Renaming(Enum):
    """How far a renaming has come."""

    TO_CLOSE = "to close"
    """The old name goes on. The new one has never published, or was the name before the old one."""
    TO_OPEN = "to open"
    """The old name is closed. The new one is not opened yet."""
    DONE = "done"


def renaming(state: TableState, old: str, new: str) -> Renaming:
    """How far the table of ``state`` has come in renaming ``old`` to ``new``. Raises `WatermarkLost` where it does not
    know ``old``, `TokenMismatch` where either has another history, `ConfigError` for names that can't be, and
    `RolledBack`."""
    return _looked(state, old, new)[0]


def close_old_name(factory: LakeTieringFactory[Any], old: str, new: str) -> None:
    """The first commit. Driver. From here on no round of ``old`` is published, whoever has begun it; what such a round
    published before is in the watermark that ``new`` takes over. Does nothing where it was done before. Raises as
    `renaming` and `set_watermark` do."""

    def look(state: TableState) -> None:
        if renaming(state, old, new) is not Renaming.TO_CLOSE:
            raise _AlreadyThereError

    def change(last: Watermark | None) -> Token:
        assert last is not None
        return last.token

    with suppress(_AlreadyThereError):
        set_watermark(factory, old, change, forgotten=True, renamed_to=new, look=look)


def open_new_name(factory: LakeTieringFactory[Any], old: str, new: str) -> None:
    """The second commit. Driver, after `close_old_name`: the next round of ``new`` is the one that would have been
    that of ``old``. Does nothing where it was done before. Raises as `renaming` and `set_watermark` do."""
    found: list[Token] = []

    def look(state: TableState) -> None:
        stage, token = _looked(state, old, new)
        if stage is Renaming.DONE:
            raise _AlreadyThereError
        found[:] = [token]

    def change(_: Watermark | None) -> Token:
        token = found[0]
        return Token(new, token.run, token.epoch, token.fence, token.content, token.source)

    with suppress(_AlreadyThereError):
        set_watermark(factory, new, change, look=look)


class _AlreadyThereError(Exception):
    """Somebody has taken the step."""


def _looked(state: TableState, old: str, new: str) -> tuple[Renaming, Token]:
    """And the token at which ``old`` ended."""
    for name in (old, new):
        refuse_horizon(name)
    if old == new:
        raise ConfigError(f"{old!r} has this name already", fix="Give the new name by --to.")
    last, there = show(state, old), show(state, new)
    if last is None or (last.forgotten and last.renamed_to is None):
        raise WatermarkLost(
            f"the table does not know pipeline {old!r}",
            fix="`laketier status` lists its pipelines. One that never published has nothing to be renamed.",
        )
    if last.renamed_to not in (None, new):
        raise TokenMismatch(
            f"the pipeline {old!r} was renamed to {last.renamed_to!r}", fix="Rename that one, after its end."
        )
    if last.renamed_to is None:
        if there is None or _was_before(there, last):
            return Renaming.TO_CLOSE, last.token
        raise TokenMismatch(
            f"the table knows the pipeline {new!r} already{_told(there)}",
            why=f"rows of {old!r} and of {new!r} could not be told from each other any more",
            fix="Choose a name that never published to this table.",
        )
    if there is None or _was_before(there, last):
        return Renaming.TO_OPEN, last.token
    if there.forgotten or there.token.run != last.token.run or there.token.epoch < last.token.epoch:
        raise TokenMismatch(
            f"the pipeline {old!r} was renamed to {new!r} before, which has another history by now{_told(there)}",
            fix="Nothing is left to be done. `laketier pipeline show` tells where each of them stands.",
        )
    return Renaming.DONE, last.token


def _was_before(there: Watermark, last: Watermark) -> bool:
    """Whether ``last`` goes on where ``there`` was closed, so that it may take that name back."""
    one, other = there.token, last.token
    return there.renamed_to == other.pipeline and one.run == other.run and one.epoch <= other.epoch


def _told(there: Watermark) -> str:
    if there.renamed_to is not None:
        return f", as one that goes on as {there.renamed_to!r}"
    return ", as one that was forgotten" if there.forgotten else f", at epoch {there.token.epoch}"
