"""The ways out of a refusal: show, adopt, rewind and forget a pipeline's watermark in a table. To rename a pipeline:
`laketier.tiering.renaming`.

Each but the first is a commit of its own, a compare-and-set without files. They are for people who know which rows
are in the table. No round calls them.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import (
    COLLECTOR,
    FIRST_EPOCH,
    CommitterInitContext,
    ConfigError,
    Conflict,
    LakeCommitter,
    LakeTieringFactory,
    NotBegun,
    RolledBack,
    TableState,
    Token,
    TokenMismatch,
    UnknownOutcome,
    Watermark,
    WatermarkLost,
    host_time,
    new_attempt_id,
    refuse_renamed,
)
from laketier.tiering.retries import DEFAULT_POLICY, RetryPolicy

_LOST_RUN = "lost"
"""The run of a forgotten watermark of which nothing else is known."""


def show(state: TableState, pipeline: str) -> Watermark | None:
    """The watermark of ``pipeline``, None when the table does not know it. Raises `RolledBack`."""
    with naming_storage_errors("the table was read"):
        return state.watermark(pipeline)


@dataclass(frozen=True)
class Known:
    """A pipeline in a table: its ``watermark``, or the reason for its absence (``lost``)."""

    pipeline: str
    watermark: Watermark | None = None
    lost: RolledBack | None = None


def known(state: TableState) -> tuple[Known, ...] | None:
    """The pipelines of a table, by name; None where the format can't list them."""
    with naming_storage_errors("the table was read"):
        names = state.pipelines()
        if names is None:
            return None
        found = (_known(state, name) for name in sorted(names) if name != COLLECTOR)
        return tuple(each for each in found if each.watermark is not None or each.lost is not None)


def _known(state: TableState, pipeline: str) -> Known:
    try:
        return Known(pipeline, state.watermark(pipeline))
    except RolledBack as lost:
        return Known(pipeline, lost=lost)


def adopt(factory: LakeTieringFactory[Any], pipeline: str, *, run: str, epoch: int) -> Watermark:
    """Declare that the table holds all rows up to ``epoch`` of ``run``: the next round may be ``epoch + 1``. Raises
    `TokenMismatch` for a name that is closed, or kept, as the pipeline goes on under another one: it would go on beside
    that one, with the same rows."""
    refuse_horizon(pipeline)

    def change(last: Watermark | None) -> Token:
        _refuse_renamed(last)
        fence = 0 if last is None else last.token.fence
        return Token(pipeline, run, epoch, fence)

    return set_watermark(factory, pipeline, change, at_rest=True)


def rewind(factory: LakeTieringFactory[Any], pipeline: str, *, epoch: int) -> Watermark:
    """Go back to ``epoch`` of the same run, after the rows of later epochs were removed. Raises `ConfigError` when
    the table is not past it, `WatermarkLost` when it does not know the pipeline, and `TokenMismatch` as `adopt`."""
    refuse_horizon(pipeline)

    def change(last: Watermark | None) -> Token:
        _refuse_renamed(last)
        if last is None or last.forgotten:
            raise WatermarkLost(f"the table does not know pipeline {pipeline!r}", fix="Use `laketier pipeline adopt`.")
        if epoch >= last.token.epoch:
            raise ConfigError(
                f"the table is at epoch {last.token.epoch}, so it can't go back to {epoch}",
                fix="Use `laketier pipeline adopt` to go forward.",
            )
        return replace(last.token, epoch=epoch, content=None, source=None)

    return set_watermark(factory, pipeline, change, at_rest=True)


def forget(factory: LakeTieringFactory[Any], pipeline: str) -> Watermark:
    """Make the table treat the pipeline as new: its next round must be the first epoch. Also one whose watermark left
    the table's history, such as any pipeline of a table whose metadata was rebuilt. Raises `TokenMismatch` for one of
    which a renaming was stopped half-way, and `WatermarkLost` when the table does not know the pipeline."""
    refuse_horizon(pipeline)

    def change(last: Watermark | None) -> Token:
        if last is None or (last.forgotten and last.renamed_to is None):
            raise WatermarkLost(f"the table does not know pipeline {pipeline!r}", fix="There is nothing to forget.")
        return last.token

    lost = Token(pipeline, _LOST_RUN, FIRST_EPOCH)
    return set_watermark(
        factory,
        pipeline,
        change,
        forgotten=True,
        after_rollback=lambda: lost,
        at_rest=True,
        look=lambda state: _refuse_half_renamed(state, pipeline),
    )


def _refuse_renamed(last: Watermark | None) -> None:
    if last is not None:
        refuse_renamed(last, where=f"pipeline {last.token.pipeline!r}")


def of_the_run(state: TableState, pipeline: str, run: str) -> tuple[str, ...]:
    """The other pipelines of the table, as far as it lists them, that go on in ``run``: where one is ``pipeline`` under
    another name, both write the same rows."""
    found = ((each.pipeline, each.watermark) for each in known(state) or () if each.pipeline != pipeline)
    return tuple(name for name, last in found if last is not None and not last.forgotten and last.token.run == run)


def _refuse_half_renamed(state: TableState, pipeline: str) -> None:
    """Where each of two names goes on as the other, a renaming was stopped: begun anew, one would read all its rows a
    second time, and nobody would refuse it."""
    with suppress(RolledBack):
        last = show(state, pipeline)
        other = None if last is None or last.renamed_to is None else show(state, last.renamed_to)
        if other is not None and other.renamed_to == pipeline:
            name = other.token.pipeline
            raise TokenMismatch(
                f"the pipeline {name!r} was not renamed to {pipeline!r} to its end",
                why="`laketier pipeline rename` was stopped",
                fix=f"Run it again: `laketier pipeline rename -p {shlex.quote(name)} --to {shlex.quote(pipeline)}`.",
            )


def refuse_horizon(pipeline: str) -> None:
    """Raise `ConfigError` for the name that is no pipeline's."""
    if pipeline == COLLECTOR:
        raise ConfigError(
            f"{COLLECTOR} is no pipeline: its watermark is the horizon of orphan collection",
            why="without it, rounds would be published whose files have been deleted",
            fix="Use `laketier maintain horizon`, which lowers it as far as is safe.",
        )


def set_watermark(
    factory: LakeTieringFactory[Any],
    pipeline: str,
    change: Callable[[Watermark | None], Token],
    *,
    forgotten: bool = False,
    after_rollback: Callable[[], Token] | None = None,
    at_rest: bool = False,
    renamed_to: str | None = None,
    look: Callable[[TableState], Token | None] | None = None,
    policy: RetryPolicy = DEFAULT_POLICY,
) -> Watermark:
    """``change`` makes the new token from the last watermark; ``after_rollback``, if given, makes it when that one left
    the table's history. ``at_rest``: whether the change is of the pipeline as it was at the first look, so that one
    which goes on meanwhile is left as it is: a forgotten pipeline may have begun anew, and forgotten again it would
    read all its rows twice. ``look`` is called with each state before ``change`` and may raise; a token that it returns
    is the new one, and ``change`` is not asked. Driver. Raises `Conflict` when others' commits came first each time, or
    the pipeline went on, so that nothing is changed; `NotBegun` when attempts failed before their effect; and
    `UnknownOutcome`."""
    commit_id = new_attempt_id()
    committer = factory.create_committer(CommitterInitContext(commit_id=commit_id))
    loop = _Change(committer, commit_id, pipeline, change, forgotten, after_rollback, at_rest, renamed_to, look, policy)
    try:
        watermark: Watermark = policy.retrying(_Again)(loop.attempt)
    finally:
        committer.close()
    return watermark


class _Again(Exception):
    """An attempt failed in a way that another may not."""


@dataclass
class _Change:
    committer: LakeCommitter[Any]
    commit_id: str
    pipeline: str
    change: Callable[[Watermark | None], Token]
    forgotten: bool
    after_rollback: Callable[[], Token] | None
    at_rest: bool
    renamed_to: str | None
    look: Callable[[TableState], Token | None] | None
    policy: RetryPolicy
    conflicts: int = 0
    unknowns: int = 0
    not_begun: int = 0
    last_error: Exception | None = None
    first_seen: str | None = None

    def attempt(self) -> Watermark:
        """One pass: everything is looked at afresh."""
        state, last, rolled_back = self._look()
        if last is not None and last.commit_id == self.commit_id:
            return last
        failed = self.unknowns + self.not_begun
        if self.conflicts >= self.policy.conflicts or failed >= self.policy.unknowns:
            self._give_up()
        if self.at_rest:
            self._refuse_moved(last)
        token = None if self.look is None else self.look(state)
        if token is None:
            token = self.after_rollback() if rolled_back and self.after_rollback is not None else self.change(last)
        watermark = Watermark(
            token, self.commit_id, committed_at=host_time(), forgotten=self.forgotten, renamed_to=self.renamed_to
        )
        try:
            self.committer.publish(state, [], watermark)
        except Conflict as error:
            self.conflicts += 1
            self.last_error = error
            raise _Again from error
        except NotBegun as error:
            self.not_begun += 1
            self.last_error = error
            raise _Again from error
        except Exception as error:  # unknown: the next pass reads the table
            self.unknowns += 1
            self.last_error = error
            raise _Again from error
        return watermark

    def _look(self) -> tuple[TableState, Watermark | None, bool]:
        with naming_storage_errors("the table was read"):
            state = self.committer.open()
            try:
                return state, state.watermark(self.pipeline), False
            except RolledBack:
                # People adopt just because of that: what the old watermark said no longer counts.
                return state, None, True

    def _refuse_moved(self, last: Watermark | None) -> None:
        seen = self.first_seen
        self.first_seen = now = "" if last is None else last.commit_id
        if seen is None or seen == now:
            return
        error = UnknownOutcome if self.unknowns else Conflict
        raise error(
            f"the pipeline {self.pipeline!r} went on while its watermark was changed",
            why=str(self.last_error),
            fix="Stop what writes as this pipeline, look where it stands (`laketier pipeline show`), and run it again.",
        ) from self.last_error

    def _give_up(self) -> NoReturn:
        attempts = self.conflicts + self.unknowns + self.not_begun
        if self.not_begun and not self.unknowns:
            raise NotBegun(
                f"the watermark of pipeline {self.pipeline!r} was not set in {attempts} attempts",
                why=str(self.last_error),
                fix="Remove the cause and run it again.",
            ) from self.last_error
        if not self.unknowns:
            raise Conflict(
                f"the watermark of pipeline {self.pipeline!r} was not set: of {attempts} attempts each lost to another "
                "commit",
                why=str(self.last_error),
                fix="Run it again when fewer commits are made to the table.",
            ) from self.last_error
        raise UnknownOutcome(
            f"the watermark of pipeline {self.pipeline!r} could not be set in {attempts} attempts",
            why=str(self.last_error),
            fix="Run `laketier pipeline show` to see where it stands.",
        ) from self.last_error
