"""The publish loop: open, decide, check, one attempt, and the resolution of what its outcome left unknown.

Everything that makes a commit exactly once is in this file and in `laketier.spi.decide`; formats only supply the
attempt. The loop holds one invariant: **files are deleted only when it is certain that they did not land**. A
`Conflict` is the word of a format, or of its store, for that. The table is asked as well, since a transport that
repeats a request can get "somebody was first" for a commit of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import (
    Conflict,
    Decision,
    LakeCommitResult,
    LakeCommitter,
    NotBegun,
    Refused,
    TableNotFound,
    TableState,
    Token,
    UnknownOutcome,
    Watermark,
    WriteResult,
    decide,
    host_time,
)
from laketier.tiering.checks import BaseSnapshot, check_base, check_not_collected, check_results
from laketier.tiering.failpoints import ACK_BEFORE, DISCARD_BEFORE, PUBLISH_AFTER, PUBLISH_BEFORE, failpoint
from laketier.tiering.horizon import clock_of
from laketier.tiering.retries import DEFAULT_POLICY, RetryPolicy

log = logging.getLogger(__name__)


class RoundOutcome(Enum):
    """How a round ended. In all three cases the table has the rows of this epoch, once."""

    PUBLISHED = "published"
    """This attempt published it."""
    RECOVERED = "recovered"
    """This attempt published it, but the answer was lost; the table showed that it had landed."""
    ALREADY_THERE = "already there"
    """The epoch was in the table already. The staged files of this attempt were deleted, or left to orphan
    collection."""


@dataclass(frozen=True)
class RoundResult:
    """The result of a round. ``commit`` is None unless this attempt published the round and got the answer. ``rows``:
    of the epoch as the table has it. Of one that was already there they are those of before, whatever this attempt's
    input has by now: it may not have been read."""

    outcome: RoundOutcome
    rows: int
    files: int
    bytes: int
    snapshot_id: int | None
    conflicts: int = 0
    commit: LakeCommitResult | None = None


class _Attempt(Exception):
    """One attempt failed in a way that another may not: the loop goes on."""


def publish(
    committer: LakeCommitter[Any],
    results: Sequence[WriteResult],
    *,
    token: Token | None,
    commit_id: str,
    policy: RetryPolicy = DEFAULT_POLICY,
    base: BaseSnapshot | None = None,
) -> RoundResult:
    """Publish ``results`` as the round ``token``, exactly once. Driver. ``token`` is None for a batch without a
    pipeline: then only ``commit_id`` resolves an unknown outcome. ``base`` is the snapshot of a merge, which the
    table must still be at; None for other rows. Returns when the table has the rows once. Raises `Refused` when they
    must not be published, and won't be (they are discarded if that is certain to be safe), `NotBegun` when each attempt
    failed before its effect, `UnknownOutcome` when it is unknown whether they landed or still will, and errors of
    `LakeCommitter.open`."""
    loop = _Loop(committer, tuple(results), token, commit_id, policy, base)
    result: RoundResult = policy.retrying(_Attempt)(loop.attempt)
    failpoint(ACK_BEFORE)
    return result


def discard(committer: LakeCommitter[Any], results: Sequence[WriteResult]) -> None:
    """Delete staged files that certainly did not land. Best effort: failures are logged."""
    failpoint(DISCARD_BEFORE)
    if not any(result.files for result in results):
        return
    try:
        committer.discard(results)
    except Exception:
        log.warning("staged files could not be deleted; orphan collection will find them", exc_info=True)


@dataclass
class _Loop:
    committer: LakeCommitter[Any]
    results: tuple[WriteResult, ...]
    token: Token | None
    commit_id: str
    policy: RetryPolicy
    base: BaseSnapshot | None = None
    conflicts: int = 0
    not_begun: int = 0
    unknown: list[Exception] = field(default_factory=list)
    watermark_before: Watermark | None = None
    """What the table told of the pipeline when it was last looked at without a refusal: before each attempt."""

    def attempt(self) -> RoundResult:
        """One pass: everything is looked at afresh."""
        state, done = self._look()
        if done is not None:
            return done
        watermark = self._watermark()
        try:
            failpoint(PUBLISH_BEFORE)
            commit = self.committer.publish(state, self.results, watermark)
            failpoint(PUBLISH_AFTER)
        except Conflict as conflict:
            return self._lost(conflict)
        except NotBegun as failure:
            return self._not_begun(failure)
        except Refused as refusal:
            return self._refused(refusal)
        except Exception as error:  # noqa: BLE001 - every other failure is an unknown outcome: the next pass reads it
            return self._unknown(error)
        else:
            return self._result(RoundOutcome.PUBLISHED, commit.snapshot_id, commit)

    def _look(self) -> tuple[TableState, RoundResult | None]:
        """Read the table: its state, and the result if the epoch is there. Whatever is refused has not landed."""
        state = None
        try:
            with naming_storage_errors("the table was read"):
                state = self.committer.open()
                done = self._done(state)
                if done is None:
                    check_results(state, self.results)
                    check_base(state, self.base)
                    check_not_collected(state, self.results, clock_of(self.committer))
                return state, done
        except Refused as refusal:
            self._discard_if_certain(state)
            if self._may_land_late(state):
                raise self._refused_meanwhile(refusal) from refusal
            raise
        except UnknownOutcome:
            raise
        except Exception as error:
            # A refusal is the end of its attempt: where the table is gone by then, nothing of it can be there.
            is_gone = isinstance(error, TableNotFound) and self._only_refused
            if self.unknown and not is_gone:
                raise UnknownOutcome(
                    "the table could not be read to find out whether the commit landed",
                    why=f"{error}",
                    fix="Nothing was deleted. Run the same round again when the table can be read.",
                ) from error
            raise

    def _done(self, state: TableState) -> RoundResult | None:
        """The result, if the epoch is in the table already. Raises `Refused`."""
        if self.token is None:
            return self._result(RoundOutcome.RECOVERED, state.snapshot_id, None) if self._landed(state) else None
        watermark = state.watermark(self.token.pipeline)
        if not self.unknown:
            self.watermark_before = watermark
        if decide(watermark, self.token) is not Decision.DONE:
            return None
        assert watermark is not None
        if watermark.commit_id == self.commit_id:
            return self._result(RoundOutcome.RECOVERED, watermark.snapshot_id, None)
        # The epoch was published by another attempt. Every publish is a compare-and-set against a state of an
        # earlier epoch, so ours can't land any more. It may have landed before that, if somebody then took the table
        # back: an older snapshot may still need its files.
        self._discard_if_certain(state)
        return RoundResult(RoundOutcome.ALREADY_THERE, watermark.rows, 0, 0, watermark.snapshot_id, self.conflicts)

    def _landed(self, state: TableState) -> bool:
        """Whether this batch without a pipeline is in the table, though publishing it raised. Raises `UnknownOutcome`
        when that can't be said; after nothing but attempts that certainly did not land, it did not."""
        if self.unknown:
            return state.landed(self.commit_id)
        return self._said_absent and self._landed_despite_its_word(state) is True

    @property
    def _said_absent(self) -> bool:
        """Whether the format said of an attempt that it certainly did not land."""
        return bool(self.conflicts or self.not_begun)

    def _landed_despite_its_word(self, state: TableState) -> bool | None:
        """None when the history does not reach back far enough to say."""
        try:
            landed = state.landed(self.commit_id)
        except UnknownOutcome as error:
            log.info("it is unknown whether an attempt that was said not to land did: %s", error)
            return None
        if landed:
            log.warning("an attempt landed although it was said not to: the store, or the format, was wrong")
        return landed

    def _lost(self, conflict: Conflict) -> RoundResult:
        self.conflicts += 1
        log.info("lost attempt %d to another commit: %s", self.conflicts, conflict)
        if self.conflicts < self.policy.conflicts:
            raise _Attempt from conflict
        # One last look: were we that other commit?
        state, done = self._look()
        if done is not None:
            return done
        self._discard_if_certain(state)
        raise conflict

    def _not_begun(self, failure: NotBegun) -> RoundResult:
        """Another attempt may find the table readable again. An attempt before this one may have landed meanwhile."""
        self.not_begun += 1
        log.warning("attempt failed before its effect: %s", failure)
        if self.not_begun + len(self.unknown) < self.policy.unknowns:
            raise _Attempt from failure
        state, done = self._look()
        if done is not None:
            return done
        self._discard_if_certain(state)
        if self.unknown:
            raise self._not_landed(failure) from failure
        raise failure

    def _refused(self, refusal: Refused) -> RoundResult:
        """The format refused within its attempt: before the effect, or, finding a link where a file goes, after it; or
        an attempt before this one landed meanwhile. Only the table knows, so nothing is deleted."""
        self.unknown.append(refusal)
        _, done = self._look()
        if done is not None:
            return done
        if self._may_land_late(None):
            raise self._refused_meanwhile(refusal) from refusal
        raise refusal

    def _may_land_late(self, state: TableState | None) -> bool:
        """Whether an attempt without an answer may still be carried out: a store has its put, and takes its time. Not
        once the pipeline is at another epoch than then, as each publish is a compare-and-set; not the refusals of a
        format itself, whose attempt has ended."""
        if self._only_refused:
            return False
        if state is None or self.token is None:
            return True
        try:
            return state.watermark(self.token.pipeline) == self.watermark_before
        except Exception:  # the store that gave no answer may give none again
            log.info("it is unknown whether the pipeline went on", exc_info=True)
            return True

    @property
    def _only_refused(self) -> bool:
        """Whether the format itself refused each attempt whose outcome only the table tells."""
        return all(isinstance(error, Refused) for error in self.unknown)

    def _refused_meanwhile(self, refusal: Refused) -> UnknownOutcome:
        return UnknownOutcome(
            "the round is refused by now, and an attempt before that had no answer: it may still land",
            why=f"{type(refusal).__name__}: {refusal}",
            fix="Nothing was deleted. Run the same round again: it tells whether its rows are there, or why it is "
            "refused. Rows without a pipeline: look for them in the table before you write them anew.",
        )

    def _unknown(self, error: Exception) -> RoundResult:
        self.unknown.append(error)
        log.warning("the outcome of a commit is unknown, reading the table to find out: %r", error)
        if self.not_begun + len(self.unknown) < self.policy.unknowns:
            raise _Attempt from error
        # One last look: was it the answer that got lost?
        _, done = self._look()
        if done is not None:
            return done
        raise self._not_landed(error) from error

    def _not_landed(self, error: Exception) -> UnknownOutcome:
        return UnknownOutcome(
            f"publishing failed {self.not_begun + len(self.unknown)} times",
            why=f"{type(error).__name__}: {error}",
            fix="It had not landed when the table was last read, and nothing was deleted. Remove the cause and run the "
            "same round again.",
        )

    def _discard_if_certain(self, state: TableState | None) -> None:
        if self.unknown or (self._said_absent and not self._certainly_absent(state)):
            log.warning("an earlier attempt may have landed: staged files are left to orphan collection")
        else:
            discard(self.committer, self.results)

    def _certainly_absent(self, state: TableState | None) -> bool:
        """Whether the table, too, says that no attempt landed. False where it can't be asked."""
        if state is None:
            return False
        try:
            return self._landed_despite_its_word(state) is False
        except Exception:  # deleting is the only use of the answer, and it can wait
            log.warning("the table could not be asked whether an attempt landed", exc_info=True)
            return False

    def _watermark(self) -> Watermark | None:
        if self.token is None:
            return None
        return Watermark(
            self.token,
            self.commit_id,
            rows=sum(result.rows for result in self.results),
            committed_at=host_time(),
        )

    def _result(self, outcome: RoundOutcome, snapshot_id: int | None, commit: LakeCommitResult | None) -> RoundResult:
        return RoundResult(
            outcome,
            rows=sum(result.rows for result in self.results),
            files=sum(len(result.files) for result in self.results),
            bytes=sum(result.bytes for result in self.results),
            snapshot_id=snapshot_id,
            conflicts=self.conflicts,
            commit=commit,
        )
