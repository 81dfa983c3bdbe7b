"""What is looked at in a series: the rows here, and what a table tells of its past in `other_looks`.

Each look ends in an assertion whose sentence begins with what was looked at: "a scan".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from laketier.spi import And, Feature, LaketierError, Leaf, Not, Op, Or, Predicate, ScanPlan, ScanRequest
from laketier_conformance import apart
from laketier_conformance.expect import expect
from laketier_conformance.lake import finished, read_pinned, read_plan
from laketier_conformance.oracle import rows_for
from laketier_conformance.series.life import Life
from laketier_conformance.series.model import are_among, compare, compare_columns, values_of
from laketier_conformance.series.notes import Draw, Plan
from laketier_conformance.series.shapes import WORDS

_PLANS = 3


@dataclass(frozen=True)
class Look:
    """``see`` looks. ``always``: after each step, as it costs little. ``of_past``: also before a step that ends what is
    looked at."""

    name: str
    see: Callable[[Life, Draw], None]
    needs: tuple[Feature, ...] = ()
    always: bool = False
    of_past: bool = False


def _scan(life: Life, draw: Draw) -> None:
    """Of all rows; now and then its plan is kept, to be read later."""
    source = life.source
    plan = source.plan(ScanRequest())
    compare_columns(plan.schema, life.now.schema, "the columns of a scan")
    found = [read_plan(source, replace(plan, splits=(split,))) for split in plan.splits]
    rows = [row for each in found for row in values_of(each)]
    compare(rows, life.now.values(life.now.rows), "a scan")
    for split, part in zip(plan.splits, found, strict=True):
        assert split.rows in (None, part.num_rows), (
            f"the rows that a split tells of a scan: expected {part.num_rows}, or None, found {split.rows}"
        )
    if draw.seed % 4 == 0:
        life.plans = [*life.plans, Plan(source, plan, life.now, len(life.done))][-_PLANS:]


def _some_columns(life: Life, draw: Draw) -> None:
    names = [column.field.name for column in life.now.columns]
    draw.dice.shuffle(names)
    names = names[: draw.dice.randint(0, len(names) - 1)]
    found = life.read(life.source, columns=tuple(names))
    expect(found.column_names, names, "the columns of a scan of some columns")
    compare(values_of(found), life.now.values(life.now.rows, names), f"a scan of the columns {', '.join(names) or '-'}")


def _predicates(life: Life, draw: Draw) -> list[Predicate]:
    """Of values that are there, that were there once, and between them."""
    rows, name, made = life.now.rows, life.now.name("name"), life.now.name("made")
    ids = draw.some({*life.now.ids, *life.gone}, 2) or [0]
    numbers = draw.some([row["made"] for row in rows], 2) or [0]
    word = next((row["name"] for row in rows if row["id"] in ids and row["name"]), "it's")
    value = life.now.name("value")
    found: list[Predicate] = [
        Leaf("id", Op.EQ, ids[0]),
        Leaf("id", Op.IN, tuple(ids)),
        Leaf("id", Op.LE, ids[-1]),
        Leaf(made, Op.GE, numbers[0]),
        Leaf(made, Op.LT, numbers[-1]),
        Leaf(name, Op.EQ, word),
        Leaf(name, Op.STARTS_WITH, word[:1]),
        Leaf(name, Op.GT, draw.dice.choice([each for each in WORDS if each])),
        Leaf(name, Op.IS_NULL),
        Not(Leaf(value, Op.IS_NULL)),
        And((Leaf("id", Op.GE, ids[0]), Leaf(made, Op.NE, numbers[0]))),
        Or((Leaf(name, Op.IS_NULL), Leaf("id", Op.EQ, ids[-1]))),
    ]
    found += [Leaf(each.field.name, Op.IS_NULL) for each in life.now.columns if each.key.startswith("extra")]
    if any(each.key == "part" for each in life.now.columns):
        found += [Leaf("part", Op.EQ, "a%2Fb"), Leaf("part", Op.IN, ("A", "a b")), Leaf("part", Op.IS_NULL)]
    return found


def _filters(life: Life, draw: Draw, count: int = 2) -> None:
    predicates = _predicates(life, draw)
    source = life.source
    for predicate in draw.dice.sample(predicates, min(count, len(predicates))):
        plan = source.plan(ScanRequest(filters=(predicate,)))
        found = finished(read_plan(source, plan), plan, None)
        expected = rows_for(predicate, life.now.table(plan.schema))
        compare(values_of(found), values_of(expected), f"a scan with the filter {predicate}")


def _limit(life: Life, draw: Draw) -> None:
    there = len(life.now.rows)
    limit = draw.dice.choice([1, max(0, there - 1), there, there + 1])
    found = values_of(life.read(life.source, limit=limit))
    expect(len(found), min(limit, there), f"the number of rows of a scan with a limit of {limit}, of {there}")
    are_among(found, life.now.values(life.now.rows), f"a scan with a limit of {limit}")


def _filter_and_limit(life: Life, draw: Draw) -> None:
    predicate = draw.dice.choice(_predicates(life, draw))
    source = life.source
    plan = source.plan(ScanRequest(filters=(predicate,), limit=2))
    found = values_of(finished(read_plan(source, plan), plan, 2))
    expected = values_of(rows_for(predicate, life.now.table(plan.schema)))
    told = f"a scan with the filter {predicate} and a limit of 2"
    expect(len(found), min(2, len(expected)), f"the number of rows of {told}")
    are_among(found, expected, told)


def _older_plans(life: Life, _: Draw) -> None:
    """As they were made, or refused: by a format that keeps one state of its rows, or after an expiry."""
    for each in life.plans:
        ended = next((then.ended for then in life.past if then.snapshot == each.plan.snapshot_id), True)
        told = f"a plan that was made after step {each.after} is read"
        try:
            rows = read_pinned(each.source, each.plan, life.lake.plugin.features)
        except LaketierError:
            if ended:
                continue
            raise
        if rows is not None:
            compare(values_of(rows), each.state.values(each.state.rows), told)


def _plain_parquet(life: Life, _: Draw) -> None:
    source = life.source
    plan = source.plan(ScanRequest())
    for split in plan.splits:
        if split.plain_parquet is None:
            continue
        content = apart.read(split.plain_parquet.removeprefix("file://"))
        whole = pq.ParquetFile(pa.BufferReader(content)).read()
        names = plan.schema.names
        lacking = sorted(set(names) - set(whole.column_names))
        assert not lacking, f"the plain Parquet file of a split: expected all columns, found none called {lacking}"
        through = _of_split(source, plan, split)
        compare(
            values_of(whole.select(names).cast(plan.schema)), values_of(through), "the plain Parquet file of a split"
        )


def _of_split(source: object, plan: ScanPlan, split: object) -> pa.Table:
    return read_plan(source, replace(plan, splits=(split,)))  # type: ignore[arg-type]


ROWS: Sequence[Look] = (
    Look("scan", _scan, always=True),
    Look("some columns", _some_columns),
    Look("filters", _filters),
    Look("more filters", partial(_filters, count=4)),
    Look("limit", _limit),
    Look("filter and limit", _filter_and_limit),
    Look("older plans", _older_plans),
    Look("plain parquet", _plain_parquet, (Feature.PLAIN_PARQUET,)),
)
