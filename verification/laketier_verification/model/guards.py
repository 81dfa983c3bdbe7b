"""What the protocol relies on, each thing with a name, so that the model can do without it; and what must hold."""

from __future__ import annotations

from enum import Enum


class Guard(Enum):
    """One rule of the protocol. The value says what it is; the comment where it lives."""

    COMPARE_AND_SET = "a publish is a compare-and-set"  # LakeCommitter.publish
    EMPTY_COMPARE_AND_SET = "a publish without files is one too"  # LakeCommitter.publish
    ATOMIC_WATERMARK = "rows and watermark change in one step"  # LakeCommitter.publish
    NAMES_STAY_TAKEN = "a version's name is never free again"  # localfile: tombstones; SINKS.md
    STAGED_IS_INVISIBLE = "staged files are invisible"  # LakeWriter
    UNIQUE_NAMES = "each attempt's files have names of their own"  # new_attempt_id
    WATERMARK_SURVIVES = "the watermark outlives expiry"  # UnsafeTable, TableState.watermark
    DECIDE_AGAIN = "each pass of the loop decides again"  # _Loop.attempt
    SCHEMA_CHECK = "files are checked against the state that was opened"  # check_results
    RUN_CHECK = "another run is refused"  # decide: TokenMismatch
    CONTENT_CHECK = "other content under the same epoch is refused"  # decide: TokenMismatch
    FENCE_CHECK = "an older lease is refused"  # decide: Fenced
    STALE_CHECK = "an epoch behind the watermark is refused, not done"  # decide: Stale
    GAP_CHECK = "an epoch that does not follow is refused"  # decide: Gap
    LOST_CHECK = "a later epoch of an unknown pipeline is refused"  # decide: WatermarkLost
    UNKNOWN_IS_NO_FAILURE = "an error of publish is no proof that nothing landed"  # _Loop.attempt: except Exception
    READ_BEFORE_RETRY = "the table is read before an unknown attempt is repeated"  # _Loop._unknown
    DISCARD_IF_CERTAIN = "after an unknown outcome a refusal deletes nothing"  # _Loop._discard_if_certain
    COMMIT_ID = "the commit id tells one's own commit from a rival's"  # _Loop._done
    LANDED = "a batch looks for its commit id before it tries again"  # _Loop._is_done: TableState.landed
    ABORT_IS_A_HINT = "an abort after commit began deletes nothing"  # TieringRound.abort
    CONFIRM_DONE = "an epoch found done is looked at again before it is acknowledged"  # TieringRound.confirm_done
    HORIZON_CHECK = "attempts from before the horizon are refused"  # check_not_collected
    HORIZON_FIRST = "the horizon is raised before anything is deleted"  # collect_orphans
    HORIZON_IS_A_COMMIT = "raising the horizon is a commit of the table"  # raise_horizon: set_watermark
    LIST_AGAIN = "orphans are listed again behind the horizon"  # collect_orphans
    BOTH_LISTS = "only what the first list named as well is deleted"  # orphans._still
    RESTORE_NOTICED = "a foreign restore is noticed"  # TableState.watermark: RolledBack
    ROLLBACK_KEEPS_HORIZON = "after a foreign restore old attempts are refused"  # horizon_of: RolledBack
    ROLLBACK_RAISES_HORIZON = "the first horizon after a restore is no lower than that"  # raise_horizon

    # A member is one object, and the exploration asks for membership all the time: Enum's own hash takes its name's.
    __hash__ = object.__hash__


class Invariant(Enum):
    """What is asserted in every state, and of each state: PROGRESS."""

    ACKNOWLEDGED = "the rows of an acknowledged epoch are visible"
    ONCE = "no epoch's rows are visible twice"
    WHOLE = "no retained snapshot references a deleted file"
    ORDER = "visible epochs have no holes"
    FENCE = "no older lease publishes after a newer one"
    FITS = "no published file was written for another schema"
    LEAK = "at rest each file is referenced, deleted, or one that the collector lists"
    PROGRESS = "all epochs can still be acknowledged"


REDUNDANT = frozenset({Guard.READ_BEFORE_RETRY, Guard.COMMIT_ID, Guard.BOTH_LISTS})
"""Guards that another one covers: the model finds nothing without them. `docs/proof/model.md` says which and why."""
