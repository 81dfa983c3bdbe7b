"""What an application is like that uses a table: a cell of a notebook, whose event loop runs; a thread of a server; a
calculation that has set the digits of its decimals; a daemon without standard streams. None of it changes a table."""

from __future__ import annotations

import asyncio
import contextlib
import decimal
import operator
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pyarrow as pa
import pytest

from laketier.spi import Feature, IncompatibleData, Leaf, Op, PartitionField, UnsupportedType
from laketier.tiering import RoundOutcome
from laketier_conformance.expect import expect, goes_well
from laketier_conformance.lake import SCHEMA, Lake, Table, token

Act = Callable[[], None]


def _in_a_cell(act: Act) -> None:
    async def cell() -> None:
        act()

    asyncio.run(cell())


def _on_a_thread(act: Act) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(act).result()


def _with_four_digits(act: Act) -> None:
    with decimal.localcontext(decimal.Context(prec=4, rounding=decimal.ROUND_UP)):
        act()


def _without_streams(act: Act) -> None:
    with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
        act()


APPLICATIONS: dict[str, tuple[str, Callable[[Act], None]]] = {
    "cell": ("in a cell of a notebook, whose event loop runs", _in_a_cell),
    "thread": ("on a thread that is not the main one", _on_a_thread),
    "digits": ("where decimals are calculated with four digits, and rounded up", _with_four_digits),
    "streams": ("in a daemon, which has no standard output and no standard error", _without_streams),
}

PRICES = [
    Decimal(each)
    for each in (
        "123456.789012",
        "123456.789013",
        "123456.789011",
        "-123456.789012",
        "-123456.789013",
        "0.000001",
        "99999.999999",
        "0.000000",
    )
]
"""No four digits tell them apart."""
_HOLDS: dict[Op, Callable[[Decimal, Decimal], bool]] = {
    Op.EQ: operator.eq,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_uses_a_table(lake: Lake, name: str) -> None:
    """Rounds and their replays, a change, filters, and a table whose rows are parted by decimals."""
    where, run_in = APPLICATIONS[name]

    def act() -> None:
        _use(lake, pa.decimal128(18, 6), "db.priced", where)
        _use(lake, pa.decimal128(18, 6), "db.parted", where, partition_by=(PartitionField("price"),))

    with goes_well(f"a table is used {where}"):
        run_in(act)


def _use(lake: Lake, kind: pa.DataType, name: str, where: str, partition_by: tuple[PartitionField, ...] = ()) -> None:
    if partition_by and not lake.declares(Feature.PARTITIONING):
        return
    schema = pa.schema([SCHEMA.field("id"), ("price", kind)])
    try:
        table = lake.create(schema, name, partition_by=partition_by)
    except UnsupportedType:
        return
    half = len(PRICES) // 2
    for epoch, start in enumerate((0, half)):
        ids = list(range(start, start + half))
        rows = pa.record_batch([pa.array(ids, pa.int64()), pa.array(PRICES[start : start + half], kind)], schema=schema)
        for outcome in (RoundOutcome.PUBLISHED, RoundOutcome.ALREADY_THERE):
            try:
                found = table.publish_arrow([rows], token(epoch)).outcome
            except IncompatibleData:
                return  # as of values that it can't part rows by
            expect(found, outcome, f"the outcome of epoch {epoch} of {name}, which is used {where}")
    _is_read(table, where)


def _is_read(table: Table, where: str) -> None:
    whole = dict(zip(*table.read().sort_by("id").to_pydict().values(), strict=True))
    expect(whole, dict(enumerate(PRICES)), f"rows of {table.path}, which is used {where}")
    for op, holds in _HOLDS.items():
        for bound in PRICES:
            ids = sorted(table.read(filters=(Leaf("price", op, bound),))["id"].to_pylist())
            expected = [number for number, price in whole.items() if holds(price, bound)]
            expect(ids, expected, f"ids of rows of {table.path} whose price is {op.value} {bound}, read {where}")
