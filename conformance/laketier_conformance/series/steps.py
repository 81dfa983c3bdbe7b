"""What is done to a table in a series, one entry each: rounds of pipelines here, and the rest in `other_steps`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laketier.spi import (
    Conflict,
    Feature,
    LakeTieringFactory,
    ScanRequest,
    Stale,
    Watermark,
    WriteMode,
    WriteResult,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance.expect import expect, refused
from laketier_conformance.lake import QUICK, read_plan, token
from laketier_conformance.series.life import Life
from laketier_conformance.series.model import Row, named
from laketier_conformance.series.notes import APPENDED, REPLACED, UNSURE, Draw, Landed

APPEND, OVERWRITE, UPSERT = WriteMode.APPEND, WriteMode.OVERWRITE, WriteMode.UPSERT
_LARGE, _MANY = 800, 9


@dataclass(frozen=True)
class Step:
    """``do`` does it, and tells in words what it did; None where there was nothing to do. ``hook``: the member of the
    harness that it takes. ``of``: with a primary key or without. ``ends``: older snapshots, or the whole table and
    ``makes_anew`` another one. ``variation``: of another step, or one that leaves rows as they are."""

    name: str
    do: Callable[[Life, Draw], str | None]
    needs: tuple[Feature, ...] = ()
    hook: str = ""
    of: tuple[bool, ...] = (False, True)
    ends: bool = False
    makes_anew: bool = False
    variation: bool = False


def _tasks(life: Life, draw: Draw, kind: str) -> list[list[Row]]:
    """The rows of each task of a round."""
    if kind == "large":
        return [[life.row(10_000 * draw.at + number, 10_000 * draw.at + number) for number in range(_LARGE)]]
    counts = [1] * _MANY if kind == "many" else [draw.dice.randint(1, 3) for _ in range(draw.dice.randint(1, 2))]
    rows = life.new_rows(draw, sum(counts))
    if kind == "twice":
        rows[-1] = rows[0]
    tasks = []
    for count in counts:
        tasks.append(rows[:count])
        rows = rows[count:]
    return [*tasks, []] if draw.dice.random() < 0.2 else tasks


def _staged(
    life: Life, tasks: Sequence[Sequence[Row]], mode: WriteMode, factory: LakeTieringFactory[Any]
) -> Sequence[WriteResult]:
    return [life.staged(factory, rows, index, mode) for index, rows in enumerate(tasks)]


def _came(tasks: Sequence[Sequence[Row]], by: tuple[int, str | None, int | None]) -> str:
    parts = " | ".join(named([row["id"] for row in rows]) for rows in tasks) or "no task"
    _, pipeline, epoch = by
    return f"{parts} by a batch" if pipeline is None else f"{parts} by epoch {epoch} of {pipeline}"


def _round(
    life: Life, draw: Draw, kind: str = "", pipeline: str | None = "p", mode: WriteMode = APPEND, old: bool = False
) -> str | None:
    tasks: list[list[Row]] = [] if kind == "empty" else _tasks(life, draw, kind)
    if kind == "empty" and draw.dice.random() < 0.5:
        tasks = [[]]
    factory = life.factory if old else None
    if old and factory is None:
        return None
    before = life.now
    by = life.round(partial(_staged, life, tasks, mode), pipeline, mode, factory)
    rows = [row for task in tasks for row in task]
    if mode is OVERWRITE:
        life.set(replace(life.now, rows=tuple(rows)))
        life.note(REPLACED if before.rows else UNSURE, by=by, brought=bool(before.rows or rows))
        return f"overwritten: {_came(tasks, by)}"
    life.set(life.now.plus(rows))
    life.note(APPENDED, rows, by, brought=bool(rows))
    since = ", by a driver that began before" if old else ""
    return f"{_came(tasks, by)}{since}"


def _keep_factory(life: Life, _: Draw) -> str | None:
    if life.factory is not None:
        return None
    life.factory = life.table.factory
    return "a driver began"


def _replay(life: Life, draw: Draw) -> str | None:
    """With other rows, as whoever would publish them is seen to."""
    known = sorted(life.marks)
    if not known:
        return None
    mark, _, rows = life.marks[draw.dice.choice(known)]
    again = [life.row(100 * draw.at, 1_000 * draw.at)]
    for epoch in {mark.epoch, max(0, mark.epoch - 1)}:
        factory = life.table.factory
        tiering = TieringRound(factory, token=token(epoch, mark.pipeline), policy=QUICK)
        if epoch < mark.epoch:
            with refused(Stale, f"epoch {epoch} of {mark.pipeline}, which is at epoch {mark.epoch}, is begun again"):
                tiering.begin()
            tiering.close()
            continue
        staged = [] if life.shape.keyed else [life.staged(factory, again)]
        result = tiering.commit(staged)
        expect(
            (result.outcome, result.rows),
            (RoundOutcome.ALREADY_THERE, rows),
            f"outcome and rows of a replay of epoch {epoch} of {mark.pipeline}",
        )
    return f"epoch {mark.epoch} of {mark.pipeline} was replayed"


def _given_up(life: Life, draw: Draw, discards: bool) -> str:
    """Its files stay, as after a kill, or are discarded."""
    factory = life.table.factory
    rows = life.new_rows(draw, 2)
    tiering = TieringRound(factory, token=life.next("p"), policy=QUICK)
    tiering.begin()
    result = life.staged(factory, rows)
    life.abandoned |= {file.path for file in result.files}
    if discards:
        tiering.abort([result], commit_was_called=False)
        life.abandoned -= {file.path for file in result.files}
        return f"a round of {named([row['id'] for row in rows])} was given up, and discarded"
    tiering.close()
    return f"a round of {named([row['id'] for row in rows])} ended before its commit, as by a kill"


def _lost_race(life: Life, draw: Draw) -> str:
    """Another pipeline commits between the look and the commit. Then the same files are published, or discarded."""
    table, commit = life.table, new_attempt_id()
    rows, lost = life.new_rows(draw, 2), draw.dice.random() < 0.5
    committer = table.committer(commit_id=commit)
    stale = committer.open()
    # As each is staged by what was there before the other, their rows have ids of their own.
    theirs = [life.row(100 * draw.at + number, 1_000 * draw.at + number) for number in (50, 51)]
    staged = life.staged(table.factory, rows)
    by = life.round(partial(_staged, life, [theirs], APPEND), "q")
    life.set(life.now.plus(theirs))
    life.note(APPENDED, theirs, by)
    mark = life.next("p")
    with refused(Conflict, "a state is published on that another pipeline's round made stale"):
        committer.publish(stale, [staged], Watermark(mark, commit, staged.rows))
    told = f"{named([r['id'] for r in theirs])} by epoch {by[2]} of q, while {named([r['id'] for r in rows])} by p lost"
    if lost:
        committer.discard([staged])
        committer.close()
        life.commits.append(Landed(commit, False, life.number))
        return f"{told} a race, and were discarded"
    committer.publish(committer.open(), [staged], Watermark(mark, commit, staged.rows))
    committer.close()
    life.commits.append(Landed(commit, True, life.number))
    life.marks["p"] = mark, commit, staged.rows
    life.set(life.now.plus(rows))
    life.note(APPENDED, rows, (staged.rows, "p", mark.epoch))
    return f"{told} a race, and came by another try"


def _merge(life: Life, draw: Draw, deletes: bool, pipeline: str = "p") -> str | None:
    """Rows replace those of their keys, or keys go: as the core does, files that have some of them are written anew
    without these, and the new rows come. One task for each file, or one for all."""
    keys = draw.some(life.now.ids, draw.dice.randint(1, 3))
    new = [] if deletes else life.new_rows(draw, draw.dice.randint(1, 2))
    apart = draw.dice.random() < 0.5
    if deletes and not keys:
        return None
    if not deletes:
        keys = keys[: draw.dice.randint(0, 2)]
        new += [life.row(key, 1_000 * draw.at + 500 + number) for number, key in enumerate(keys)]
        new = list({row["id"]: row for row in new}.values())
    gone = sorted({*keys, *(row["id"] for row in new)})
    replaces = bool(set(gone) & set(life.now.ids))

    def stage(factory: LakeTieringFactory[Any]) -> Sequence[WriteResult]:
        source = life.table.source
        plan = source.plan(ScanRequest())
        kept: list[tuple[tuple[str, ...], pa.Table]] = []
        for split in plan.splits:
            rows = read_plan(source, replace(plan, splits=(split,)))
            hit = pc.is_in(rows["id"], pa.array(gone, pa.int64()))
            if pc.any(hit).as_py():
                assert split.files, "a whole split of a table with a primary key says which files it reads: found none"
                kept.append((split.files, rows.filter(pc.invert(hit))))
        added = [life.batch(new)] if new else []
        if not apart:
            kept = (
                [(tuple(f for files, _ in kept for f in files), pa.concat_tables([t for _, t in kept]))] if kept else []
            )
        results = []
        for index, (files, rows) in enumerate(kept or [((), pa.table({}))]):
            batches = [each for each in rows.to_batches() if each.num_rows] + (added if index == 0 else [])
            results.append(replace(life.staged_arrow(factory, batches, index, UPSERT), replaced=files))
        return results

    by = life.round(stage, pipeline, UPSERT)
    life.set(life.now.without(gone).plus(new))
    life.note(REPLACED if replaces else UNSURE)
    if deletes:
        return f"{named(keys)} deleted by epoch {by[2]} of {pipeline}"
    return f"upserted {named([row['id'] for row in new])} by epoch {by[2]} of {pipeline}"


ROUNDS = (
    Step("round", _round, of=(False,)),
    Step("many tasks", partial(_round, kind="many"), of=(False,), variation=True),
    Step("large", partial(_round, kind="large"), of=(False,), variation=True),
    Step("equal rows", partial(_round, kind="twice"), of=(False,), variation=True),
    Step("empty", partial(_round, kind="empty")),
    Step("second pipeline", partial(_round, pipeline="q"), of=(False,), variation=True),
    Step("batch", partial(_round, pipeline=None), of=(False,), variation=True),
    Step("driver begins", _keep_factory, of=(False,), variation=True),
    Step("old driver", partial(_round, old=True), of=(False,), variation=True),
    Step("overwrite", partial(_round, mode=OVERWRITE), needs=(Feature.OVERWRITE,)),
    Step("overwrite with nothing", partial(_round, kind="empty", mode=OVERWRITE), needs=(Feature.OVERWRITE,)),
    Step("upsert", partial(_merge, deletes=False), of=(True,)),
    Step("upsert of a second pipeline", partial(_merge, deletes=False, pipeline="q"), of=(True,), variation=True),
    Step("delete by key", partial(_merge, deletes=True), of=(True,)),
    Step("replay", _replay, variation=True),
    Step("given up", partial(_given_up, discards=True), variation=True),
    Step("killed", partial(_given_up, discards=False), variation=True),
    Step("lost race", _lost_race, of=(False,)),
)
