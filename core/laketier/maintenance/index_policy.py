"""When an index is appended to, merged or built anew: a pure decision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from laketier.config.indexes import IndexSection
from laketier.spi import UNLIMITED, IndexInfo, IndexMode, IndexResources, IndexSpec

_SLACK_MS = 60_000
"""Hosts' clocks differ. A part that is dated further ahead was built by a clock that is wrong."""


@dataclass(frozen=True)
class IndexPolicy:
    """How an index follows its table.

    Attributes:
        spec: The index. It is created once the table has rows.
        max_unindexed_rows: So many rows without it are indexed at once. None: their number does not matter.
        max_unindexed_seconds: Fewer rows are indexed once the newest part of the index is so old. None: they wait for
            more rows.
        max_segments: More segments than that are merged. 1 or more.
        max_deleted_share: It is built anew once so large a share of the rows that it counts was deleted. 1: never.
        resources: What each task of a build may take.
    """

    spec: IndexSpec
    max_unindexed_rows: int | None = 100_000
    max_unindexed_seconds: float | None = 600.0
    max_segments: int = 8
    max_deleted_share: float = 0.2
    resources: IndexResources = UNLIMITED


def policy_of(section: IndexSection) -> IndexPolicy:
    """The policy that a file describes."""
    return IndexPolicy(
        IndexSpec(section.index_name, section.column, section.kind, dict(section.options)),
        section.max_unindexed_rows,
        section.max_unindexed_age,
        section.max_segments,
        section.max_deleted_share,
        IndexResources(section.workers, section.memory, section.partition_size, section.spill),
    )


class IndexStep(StrEnum):
    """What is done to an index next."""

    CREATE = "create"
    APPEND = "append"
    MERGE = "merge"
    REBUILD = "rebuild"
    NOTHING = "nothing"


MODES = {
    IndexStep.CREATE: IndexMode.CREATE,
    IndexStep.APPEND: IndexMode.APPEND,
    IndexStep.MERGE: IndexMode.MERGE,
    IndexStep.REBUILD: IndexMode.REPLACE,
}
"""How each step is built. `IndexStep.NOTHING` is not."""


@dataclass(frozen=True)
class IndexDecision:
    """A step, and why."""

    step: IndexStep
    why: str


def built_age(built_at: int | None, now: int) -> float | None:
    """The age in seconds of a part that was built at ``built_at``, both in ms since the epoch. None where it is
    unknown, as of a part that is dated ahead."""
    return None if built_at is None or built_at > now + _SLACK_MS else max(0, now - built_at) / 1000


def decide_index(info: IndexInfo | None, rows: int, policy: IndexPolicy, now: int) -> IndexDecision:
    """Decide what an index needs next. Pure: each step changes ``info``, so ask again after it, until there is nothing.

    Rows that were deleted come first, as building anew also appends and merges; then rows that are not indexed; then
    the number of segments. Of a part whose date lies in the future, by the clock of the host that built it, the age is
    unknown: rows behind it are indexed, as the wait for them would be as long as that clock is wrong by.

    Args:
        info: The index as it is. None where there is none.
        rows: The rows of the table. Looked at only where there is no index.
        policy: The policy.
        now: The time, in ms since the epoch.

    Returns:
        The next step.
    """
    if info is None:
        if rows:
            return IndexDecision(IndexStep.CREATE, f"{rows} rows and no index")
        return IndexDecision(IndexStep.NOTHING, "the table has no rows")
    if info.damage is not None and info.rows_indexed + info.rows_not_indexed:
        return IndexDecision(IndexStep.REBUILD, f"it is damaged: {info.damage}")
    counted = info.rows_indexed + info.rows_deleted
    # Where no row is left to index there is nothing to build from.
    if info.rows_deleted > policy.max_deleted_share * counted and info.rows_indexed + info.rows_not_indexed:
        return IndexDecision(IndexStep.REBUILD, f"{info.rows_deleted} of {counted} rows in it were deleted")
    if info.rows_not_indexed:
        if policy.max_unindexed_rows is not None and info.rows_not_indexed >= policy.max_unindexed_rows:
            return IndexDecision(IndexStep.APPEND, f"{info.rows_not_indexed} rows are not indexed")
        age = built_age(info.built_at, now)
        limit = policy.max_unindexed_seconds
        if limit is not None and (age is None or age >= limit):
            told = "unknown" if age is None else f"{age:.0f} s"
            why = f"{info.rows_not_indexed} rows are not indexed, and the age of its newest part is {told}"
            return IndexDecision(IndexStep.APPEND, why)
    if len(info.segments) > policy.max_segments:
        return IndexDecision(IndexStep.MERGE, f"{len(info.segments)} segments")
    return IndexDecision(IndexStep.NOTHING, "it keeps up")
