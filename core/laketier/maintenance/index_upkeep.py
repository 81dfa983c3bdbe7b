"""Indexes that follow their table: what their policies decide is built and published, step after step."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from laketier.maintenance.index_builds import BuildParts, Told, Train, build_index, train_here
from laketier.maintenance.index_policy import MODES, IndexDecision, IndexPolicy, IndexStep, decide_index
from laketier.registry import Lake
from laketier.registry.commands import naming_format
from laketier.spi import (
    ConfigError,
    FeatureNotSupported,
    IndexInfo,
    LakeIndexer,
    LaketierError,
    ScanRequest,
    TableError,
    TableInfo,
    TableNotFound,
    host_time,
)

log = logging.getLogger(__name__)

_STEPS = 4
"""At most in one go: rows are appended, segments merged, and built anew where they can't be. A stream that is faster is
followed the next time."""
_ROWS_PER_PART = 50_000
"""A build of fewer rows is not cut: each part is a segment that has to be merged."""


@dataclass(frozen=True)
class IndexUpkeep:
    """What became of an index.

    Attributes:
        name: The index.
        steps: What was done, in this order.
        info: The index as it is now. None where there is none, or where it is unknown.
        seconds: How long it took.
        error: Why the last step failed. None where none did.
    """

    name: str
    steps: tuple[IndexDecision, ...]
    info: IndexInfo | None
    seconds: float
    error: LaketierError | None = None

    @property
    def tail_share(self) -> float | None:
        """The share of the table's rows that a query has to look through without it. None where unknown."""
        if self.info is None:
            return None
        rows = self.info.rows_indexed + self.info.rows_not_indexed
        return self.info.rows_not_indexed / rows if rows else 0.0


@dataclass(frozen=True)
class _Work:
    """How builds are carried out."""

    build: BuildParts
    train: Train
    max_parts: int
    told: Told


def maintain_lake_indexes(
    lake: Lake,
    policies: Sequence[IndexPolicy],
    *,
    build: BuildParts,
    max_parts: int,
    train: Train = train_here,
    told: Told = lambda _: None,
) -> tuple[IndexUpkeep, ...]:
    """Do what the policies of a table's indexes ask for, now. Driver. One that fails does not stop the others.

    Nothing is done to a table that does not exist yet. An index that is there with other settings than its policy has
    is refused with `ConfigError`, as building it anew would be for ever if another policy wanted it otherwise.

    Args:
        lake: The table.
        policies: Its policies.
        build: Builds parts.
        max_parts: The parts of a build at most. A new index never has more segments than its policy allows.
        train: Trains the model of an index of vectors. In this process by default.
        told: Called as the builds go on.

    Returns:
        What became of each index, in the order of the policies.

    Raises:
        FeatureNotSupported: The format builds no indexes.
        TableError: The table could not be read.
        StorageError: The storage refused.
    """
    try:
        table = lake.load_table()
    except TableNotFound:
        return tuple(IndexUpkeep(each.spec.name, (), None, 0.0) for each in policies)
    indexer = lake.indexer(table)
    with naming_format(lake.config.format):
        try:
            # Once for all: a look reads what each full-text index counts.
            there = {each.name: each for each in indexer.indexes()}
        except LaketierError as error:
            return tuple(IndexUpkeep(each.spec.name, (), None, 0.0, error) for each in policies)
        return tuple(
            _maintained(lake, table, indexer, each, there.get(each.spec.name), _Work(build, train, max_parts, told))
            for each in policies
        )


def _maintained(
    lake: Lake,
    table: TableInfo,
    indexer: LakeIndexer,
    policy: IndexPolicy,
    info: IndexInfo | None,
    work: _Work,
) -> IndexUpkeep:
    began = time.monotonic()
    steps: list[IndexDecision] = []
    failure: LaketierError | None = None
    try:
        for _ in range(_STEPS):
            decision = decide_index(info, _rows_of(lake, table) if info is None else 0, policy, host_time())
            if decision.step is IndexStep.NOTHING:
                break
            steps.append(decision)
            log.info("index %s of %s: %s, as %s", policy.spec.name, table.path, decision.step.value, decision.why)
            info = _carried_out(indexer, decision.step, info, policy, work)
    except LaketierError as error:
        failure = error
    return IndexUpkeep(policy.spec.name, tuple(steps), info, time.monotonic() - began, failure)


def _carried_out(
    indexer: LakeIndexer,
    step: IndexStep,
    info: IndexInfo | None,
    policy: IndexPolicy,
    work: _Work,
) -> IndexInfo:
    if step is IndexStep.MERGE:
        try:
            # Half as many, so that the next appends find room: each merge writes the small ones again.
            left = (policy.max_segments + 1) // 2
            return _build(indexer, policy, step, left, work)
        except (FeatureNotSupported, TableError) as error:
            log.warning("index %s is built anew, as its segments can't be merged: %s", policy.spec.name, error)
            step = IndexStep.REBUILD
    rows = None if info is None else info.rows_not_indexed
    if info is not None and step is IndexStep.REBUILD:
        rows = info.rows_indexed + info.rows_not_indexed
    most = work.max_parts if rows is None else min(work.max_parts, max(1, rows // _ROWS_PER_PART))
    if step is not IndexStep.APPEND:
        most = min(most, policy.max_segments)
    try:
        return _build(indexer, policy, step, most, work)
    except ConfigError as error:
        if step is IndexStep.APPEND:
            error.fix = "Give its policy the settings that it has, or build it anew: `laketier index create --replace`."
        raise


def _build(indexer: LakeIndexer, policy: IndexPolicy, step: IndexStep, max_parts: int, work: _Work) -> IndexInfo:
    return build_index(
        indexer,
        policy.spec,
        MODES[step],
        max_parts=max_parts,
        build=work.build,
        train=work.train,
        told=work.told,
        resources=policy.resources,
    )


def _rows_of(lake: Lake, table: TableInfo) -> int:
    splits = lake.source(table).plan(ScanRequest(columns=(table.schema.names[0],))).splits
    return sum(1 if each.rows is None else each.rows for each in splits)
