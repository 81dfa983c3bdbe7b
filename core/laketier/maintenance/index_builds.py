"""Builds of indexes: planned, built part after part or in processes, told of as they come, and published."""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from laketier.config.suggest import did_you_mean
from laketier.kit import failpoint
from laketier.maintenance.index_tasks import build_part, needs_own_process
from laketier.spi import (
    UNLIMITED,
    BuiltIndexPart,
    ConfigError,
    IndexInfo,
    IndexKind,
    IndexMode,
    IndexPlan,
    IndexResources,
    IndexSpec,
    LakeIndexBuilder,
    LakeIndexer,
    TableChanged,
    TableError,
)

log = logging.getLogger(__name__)

PART_BUILT = "index.part_built"
"""A failpoint: after a part was built, before the next one, or before all are published."""
TRAINING, TRAINED = "index.training", "index.trained"
"""Failpoints: before and after what all parts share is trained. No part is built yet."""
_PLANS = 5
"""Plans of one build at most. Each keeps what the one before built of rows that are unchanged."""


@dataclass(frozen=True)
class IndexProgress:
    """How far a build is.

    Attributes:
        name: The index.
        parts: The parts of the plan.
        parts_built: Those that were built.
        rows: The rows of all parts.
        rows_built: The rows of the parts that were built.
        parts_kept: Parts that are not built, as an earlier build had finished them. They are not among ``parts``.
        rows_kept: Their rows.
        memory: The most bytes that the process of each part held, in the order in which they ended. 0 where unknown.
        taken: The bytes of that which each part took, beside what its process held before. 0 where unknown.
    """

    name: str
    parts: int
    parts_built: int
    rows: int
    rows_built: int
    parts_kept: int = 0
    rows_kept: int = 0
    memory: tuple[int, ...] = ()
    taken: tuple[int, ...] = ()


def said_beside(done: IndexProgress) -> str:
    """What a line of progress says beside parts and rows: the memory of the largest process, and what is not built."""
    memory = f"; {max(done.memory) / 1e6:,.0f} MB in a process at most" if any(done.memory) else ""
    if any(done.taken):
        memory += f"; {max(done.taken) / 1e6:,.0f} MB for a part"
    kept = f"; {done.parts_kept} parts, {done.rows_kept:,} rows of an earlier build" if done.parts_kept else ""
    return memory + kept


BuildParts = Callable[[IndexPlan], Iterator[BuiltIndexPart]]
"""Builds the parts of a plan, and gives each as soon as it was built, in any order."""

Train = Callable[[LakeIndexBuilder], LakeIndexBuilder]
"""Has what all parts share trained by a builder that needs it, and gives the builder that has it."""

Told = Callable[[IndexProgress], None]


def train_here(builder: LakeIndexBuilder) -> LakeIndexBuilder:
    """Train in this process. A `Train`."""
    return builder.train()


E = TypeVar("E", bound=StrEnum)


def build_index(
    indexer: LakeIndexer,
    spec: IndexSpec,
    mode: IndexMode,
    *,
    max_parts: int,
    build: BuildParts,
    train: Train = train_here,
    told: Told = lambda _: None,
    resume: bool = True,
    resources: IndexResources = UNLIMITED,
    max_segments: int | None = None,
) -> IndexInfo:
    """Plan an index, have its parts built, and publish them in one step. Driver.

    Where rows were rewritten meanwhile (by a compaction, say), only these are built again, if the format can tell them
    apart. So a build ends beside others who change the table. Where an earlier build of this index died, the parts that
    it had finished are used, if the format finds them.

    Args:
        indexer: The indexer of the table.
        spec: What to build.
        mode: What to do to an index of that name.
        max_parts: The number of parts at most; for `IndexMode.MERGE`, of segments that are left.
        build: Builds the parts.
        train: Trains what they share, for kinds that need it. In this process by default.
        told: Called once before the first part, and after each.
        resume: Whether to use parts that an earlier build left.
        resources: What each task may take. By default whatever the format's library takes.
        max_segments: The segments that a query has to ask at most: more are merged by a second build, with a commit of
            its own, so the index answers in between. By default as many as there are parts, and those of before.

    Returns:
        The index as it is in the table.

    Raises:
        ConfigError: The spec does not fit the table or the index that is there.
        FeatureNotSupported: The format does not build this.
        TableChanged: Rows were rewritten each time while it was built. Nothing was published.
        CommitError: It was not published, or it is unknown whether it was.
    """
    info = _published(indexer, spec, mode, max_parts, resources, build=build, train=train, told=told, resume=resume)
    if max_segments is None or len(info.segments) <= max_segments or mode is IndexMode.MERGE:
        return info
    same = replace(spec, options={})  # those of the index that is there
    return _published(
        indexer, same, IndexMode.MERGE, max_segments, resources, build=build, train=train, told=told, resume=resume
    )


def _published(
    indexer: LakeIndexer,
    spec: IndexSpec,
    mode: IndexMode,
    max_parts: int,
    resources: IndexResources,
    *,
    build: BuildParts,
    train: Train,
    told: Told,
    resume: bool,
) -> IndexInfo:
    plan = _within(indexer.plan(spec, max_parts, mode), resources)
    if resume and plan.parts:
        plan = indexer.resume(plan, max_parts)
        if plan.kept:
            log.info("index %s: %d parts of an earlier build are kept", spec.name, len(plan.kept))
    for attempt in range(1, _PLANS + 1):
        if plan.parts and plan.builder.needs_training:
            failpoint(TRAINING)
            plan = replace(plan, builder=train(plan.builder))
            failpoint(TRAINED)
        built = _built(plan, build, told)
        try:
            return indexer.publish(plan, built)
        except TableChanged as changed:
            if attempt == _PLANS:
                raise
            plan = _within(indexer.replan(plan, built, max_parts), resources)
            log.info(
                "index %s: %s; %d parts are kept, %d are built", spec.name, changed, len(plan.kept), len(plan.parts)
            )
    raise AssertionError("unreachable")


def _within(plan: IndexPlan, resources: IndexResources) -> IndexPlan:
    return replace(plan, builder=plan.builder.within(resources), resources=resources)


def _built(plan: IndexPlan, build: BuildParts, told: Told) -> list[BuiltIndexPart]:
    parts, rows = len(plan.parts), sum(part.rows for part in plan.parts)
    kept, rows_kept = len(plan.kept), sum(each.rows for each in plan.kept)
    built: list[BuiltIndexPart] = []
    told(IndexProgress(plan.spec.name, parts, 0, rows, 0, kept, rows_kept))
    for each in build(plan) if plan.parts else ():
        built.append(each)
        failpoint(PART_BUILT)
        done = sum(part.rows for part in built)
        memory, taken = tuple(part.peak_memory for part in built), tuple(part.memory_taken for part in built)
        # Of other kinds the memory bounds what is sorted at a time, and a part takes more.
        limit = plan.resources.memory if plan.spec.kind is IndexKind.INVERTED else None
        if limit is not None and each.memory_taken > limit:
            log.warning(
                "index %s: part %d took %d bytes, though memory = %d",
                plan.spec.name,
                each.part.number,
                each.memory_taken,
                limit,
            )
        told(IndexProgress(plan.spec.name, parts, len(built), rows, done, kept, rows_kept, memory, taken))
    return built


def build_here(plan: IndexPlan) -> Iterator[BuiltIndexPart]:
    """Build part after part in this process, or in one of their own where they need that. A `BuildParts`."""
    if needs_own_process(plan.builder, plan.resources):
        yield from build_in_processes(1)(plan)
        return
    for part in plan.parts:
        yield build_part(plan.builder, part, plan.resources)


def build_in_processes(processes: int) -> BuildParts:
    """Build parts in processes of their own, which start anew (``spawn``): libraries of formats survive no fork.

    Args:
        processes: The number of processes, 1 or more.

    Returns:
        A `BuildParts`. It raises `TableError` where one of the processes died.
    """

    def build(plan: IndexPlan) -> Iterator[BuiltIndexPart]:
        started = multiprocessing.get_context("spawn")
        at_once = min(processes, len(plan.parts), plan.resources.workers or processes)
        with ProcessPoolExecutor(at_once, mp_context=started) as pool:
            try:
                waiting = [pool.submit(build_part, plan.builder, part, plan.resources) for part in plan.parts]
                for each in as_completed(waiting):
                    yield each.result()
            except BrokenProcessPool as error:
                raise TableError(
                    f"a process that built a part of index {plan.spec.name!r} died; nothing was published",
                    why="it was killed, most likely for lack of memory",
                    fix="Build in fewer processes, or in more parts.",
                ) from error
            finally:
                pool.shutdown(cancel_futures=True)

    return build


def default_processes() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def find_index(indexer: LakeIndexer, name: str) -> IndexInfo:
    """The index of that name. Raises `ConfigError` where there is none."""
    found = {each.name: each for each in indexer.indexes()}
    if name in found:
        return found[name]
    there = f"There are {', '.join(found)}." if found else "The table has none."
    raise ConfigError(f"there is no index {name!r}", fix=did_you_mean(name, found, there))


def index_kind(text: str) -> IndexKind:
    """The kind of that name, in any spelling of case and ``-``. Raises `ConfigError`."""
    return _member(IndexKind, text, "kind of index")


def index_mode(text: str) -> IndexMode:
    """The mode of that name. Raises `ConfigError`."""
    return _member(IndexMode, text, "mode")


def _member(kinds: type[E], text: str, what: str) -> E:
    try:
        return kinds(text.lower().replace("_", "-"))
    except ValueError as error:
        names = [each.value for each in kinds]
        fix = did_you_mean(text, names, "Choose one.")
        raise ConfigError(f"there is no {what} {text!r}", why=f"there are {', '.join(names)}", fix=fix) from error


def spec_of(info: IndexInfo) -> IndexSpec:
    """The spec by which an index that is there is appended to, or built anew: it keeps its settings. Raises
    `ConfigError` where its kind has no name here."""
    try:
        kind = IndexKind(info.kind)
    except ValueError as error:
        raise ConfigError(
            f"index {info.name!r} is of kind {info.kind!r}",
            why="laketier builds none of this kind",
            fix="Go on with the tool that built it.",
        ) from error
    return IndexSpec(info.name, info.column, kind, dict(info.options))
