"""A pipeline that goes on under another name: the new name is kept for it in one commit, the old one closed in the
next, and the new one opened in the last.

Both a kept and a closed name have a watermark that says who goes on, and `decide` refuses them. So there is no moment
in which both names read the same rows, in any lane and on any format.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from typing import Any

from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import (
    FIRST_EPOCH,
    CommitterInitContext,
    ConfigError,
    LakeTieringFactory,
    PluginBroken,
    TableState,
    Token,
    TokenMismatch,
    Watermark,
    WatermarkLost,
    new_attempt_id,
)
from laketier.tiering.pipelines import refuse_horizon, set_watermark, show

_NEVER = "never published"
"""The run of a name that is kept or closed without having published."""


class Renaming(Enum):
    """How far a renaming has come."""

    TO_CLOSE = "to close"
    """The old name goes on. The new one has never published, or was the name before the old one."""
    TO_OPEN = "to open"
    """The old name is closed, or never published. The new one is not opened yet."""
    DONE = "done"


def renaming(state: TableState, old: str, new: str) -> Renaming:
    """How far the table of ``state`` has come in renaming ``old`` to ``new``. Raises `WatermarkLost` where it does not
    know ``old``, `TokenMismatch` where either has another history, `ConfigError` for names that can't be, and
    `RolledBack`."""
    return _looked(state, old, new)[0]


def keep_new_name(factory: LakeTieringFactory[Any], old: str, new: str) -> None:
    """The first commit. Driver. No round of ``new`` is published until it is opened. Does nothing where it was done
    before. Raises as `renaming` and `set_watermark` do, and `PluginBroken` where the format keeps a part of a watermark
    alone: a name that was closed there would begin anew, and read all its rows a second time."""

    def look(state: TableState) -> None:
        if renaming(state, old, new) is not Renaming.TO_CLOSE or _is_closed(show(state, new)):
            raise _AlreadyThereError

    with suppress(_AlreadyThereError):
        set_watermark(factory, new, lambda _: _never(new), forgotten=True, renamed_to=old, look=look)
        _require_whole(factory, new)


def _require_whole(factory: LakeTieringFactory[Any], name: str) -> None:
    committer = factory.create_committer(CommitterInitContext(commit_id=new_attempt_id()))
    try:
        with naming_storage_errors("the table was read"):
            found = show(committer.open(), name)
    finally:
        committer.close()
    if found is not None and found.token.run == _NEVER and found.renamed_to is None:
        raise PluginBroken(
            f"the format gives the watermark of pipeline {name!r} back without its `renamed_to`",
            why="it stores a part of `Watermark`, and not the text of `Watermark.to_json`",
            fix="No pipeline was renamed, and the old name goes on. Use a newer version of the plugin, or report it to "
            "its author.",
        )


def close_old_name(factory: LakeTieringFactory[Any], old: str, new: str, *, also_unpublished: bool = False) -> None:
    """The second commit. Driver. From here on no round of ``old`` is published, whoever has begun it; what such a round
    published before is in the watermark that ``new`` takes over. Does nothing where it was done before.
    ``also_unpublished``: whether a name that never published is closed as well, and ``new`` left to begin. Raises as
    `renaming` and `set_watermark` do."""

    def look(state: TableState) -> None:
        last = show(state, old)
        if also_unpublished and not _has_history(last):
            if last is None or last.renamed_to != new:
                return
        elif renaming(state, old, new) is Renaming.TO_CLOSE:
            return
        raise _AlreadyThereError

    def change(last: Watermark | None) -> Token:
        return last.token if last is not None and _has_history(last) else _never(old)

    if also_unpublished:
        _free(factory, new)
    with suppress(_AlreadyThereError):
        set_watermark(factory, old, change, forgotten=True, renamed_to=new, look=look)


def _free(factory: LakeTieringFactory[Any], name: str) -> None:
    """Let a name begin that was closed and never published."""

    def look(state: TableState) -> None:
        there = show(state, name)
        if _has_history(there) or not _is_closed(there):
            raise _AlreadyThereError

    with suppress(_AlreadyThereError):
        set_watermark(factory, name, lambda _: _never(name), forgotten=True, look=look)


def open_new_name(factory: LakeTieringFactory[Any], old: str, new: str) -> None:
    """The last commit. Driver, after `close_old_name`: the next round of ``new`` is the one that would have been
    that of ``old``. Does nothing where it was done before. Raises as `renaming` and `set_watermark` do, and
    `TokenMismatch` where ``old`` is open."""

    def look(state: TableState) -> Token:
        stage, token = _looked(state, old, new)
        if stage is Renaming.DONE:
            raise _AlreadyThereError
        if stage is Renaming.TO_CLOSE:
            raise TokenMismatch(
                f"the pipeline {old!r} was opened again while it was renamed to {new!r}",
                why="the renaming was taken back meanwhile, or another one was run",
                fix="Look where each of them stands (`laketier pipeline show`), and run it again.",
            )
        return Token(new, token.run, token.epoch, token.fence, token.content, token.source)

    with suppress(_AlreadyThereError):
        set_watermark(factory, new, lambda _: _never(new), look=look)


class _AlreadyThereError(Exception):
    """Somebody has taken the step."""


def _never(name: str) -> Token:
    return Token(name, _NEVER, FIRST_EPOCH)


def _has_history(watermark: Watermark | None) -> bool:
    """Whether it is one of published rounds that count: not of a forgotten pipeline that nobody goes on for."""
    if watermark is None or (watermark.forgotten and watermark.renamed_to is None):
        return False
    return watermark.token.run != _NEVER


def _is_closed(watermark: Watermark | None) -> bool:
    return watermark is not None and watermark.renamed_to is not None


def _looked(state: TableState, old: str, new: str) -> tuple[Renaming, Token]:
    """And the token at which ``old`` ended."""
    for name in (old, new):
        refuse_horizon(name)
    if old == new:
        raise ConfigError(f"{old!r} has this name already", fix="Give the new name by --to.")
    last, there = show(state, old), show(state, new)
    if last is not None and last.renamed_to == new and not _has_history(last):
        if there is not None and there.renamed_to == old and _has_history(there):
            return Renaming.TO_OPEN, there.token  # a renaming of ``new`` to ``old`` was stopped, and is taken back
        return Renaming.DONE, last.token
    if last is None or not _has_history(last):
        raise WatermarkLost(
            f"the table does not know pipeline {old!r}",
            fix="`laketier status` lists its pipelines. One that never published has nothing to be renamed.",
        )
    if last.renamed_to not in (None, new):
        raise TokenMismatch(
            f"the pipeline {old!r} was renamed to {last.renamed_to!r}", fix="Rename that one, after its end."
        )
    if there is not None and there.token.run == _NEVER and there.renamed_to in (None, old):
        there = None  # kept for ``old``, or free
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
