"""Random histories of columns, with and without ids in the files: laketier, pyiceberg and an oracle read alike."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as it

SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(3, 25))]
STEPS = 10
NAMES = ("a", "b", "c", "d")
WIDER = {"int": it.LongType(), "float": it.DoubleType(), "decimal(5, 2)": it.DecimalType(9, 2)}
TYPES: list[tuple[Any, pa.DataType, Callable[[int], Any]]] = [
    (it.IntegerType(), pa.int32(), lambda n: n),
    (it.FloatType(), pa.float32(), lambda n: n / 2),
    (it.StringType(), pa.string(), lambda n: f"s{n}"),
    (it.DecimalType(5, 2), pa.decimal128(5, 2), lambda n: Decimal(n) / 4),
]


@dataclass
class Column:
    """A column as the oracle knows it: by what it is. ``names``: those that the name mapping has for it."""

    name: str
    kind: int
    names: set[str]


@dataclass
class Oracle:
    """What the rows should be. Files without ids keep their columns by name, and the mapping is asked when they are
    read."""

    columns: list[Column] = field(default_factory=list)
    by_column: list[dict[int, Any]] = field(default_factory=list)
    by_name: list[dict[str, Any]] = field(default_factory=list)

    def rows(self) -> list[dict[str, Any]]:
        """By the specification: what a file has under the id, or under a name of the mapping, else null."""
        found = []
        for values in self.by_column:
            row = {"id": values[0]}
            found.append(row | {column.name: values.get(id(column)) for column in self.columns})
        for named in self.by_name:
            row = {"id": named["id"]}
            for column in self.columns:
                row[column.name] = next((named[name] for name in sorted(column.names) if name in named), None)
            found.append(row)
        return sorted(found, key=lambda row: row["id"])


def _arrow(column: Column, widened: set[int]) -> pa.DataType:
    kind = TYPES[column.kind][1]
    if id(column) not in widened:
        return kind
    return {"int32": pa.int64(), "float": pa.float64()}.get(str(kind), pa.decimal128(9, 2))


def _fits(column: Column, name: str, widened: set[int], held: dict[str, set[pa.DataType]]) -> bool:
    """Whether the files without ids that have ``name`` have it as a type that reads as the column's. The mapping gives
    it to the column, and other types are refused."""
    now, first = _arrow(column, widened), TYPES[column.kind][1]
    return held.get(name, set()) <= {now, first}


def _assign(columns: list[Column], owner: Column) -> None:
    """Java's rule for a name that another column gets."""
    for column in columns:
        if column is not owner:
            column.names.discard(owner.name)
    owner.names.add(owner.name)


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_are_found_through_any_history(make: Callable[..., Any], seed: int) -> None:
    rng = random.Random(seed)
    table = make(pa.schema([("id", pa.int64())]))
    oracle, everyone, widened = Oracle(), [], set()
    keys = itertools.count(1)
    moved = False
    held: dict[str, set[pa.DataType]] = {}

    def reload() -> None:
        table.info = table.storage.catalog().load_table(table.info.path)
        table.factory = table.storage.tiering_factory(table.info)

    for step in range(STEPS):
        free = [name for name in NAMES if name not in {column.name for column in oracle.columns}]
        actions = ["ours", "moved"] + ["add"] * bool(free) * 2
        actions += ["rename", "drop", "widen"] * bool(oracle.columns) if free else []
        # Files of both kinds first: what happens to columns afterwards is what is tried.
        action = ("add", "add", "moved", "ours")[step] if step < 4 else rng.choice(actions)
        one = rng.choice(oracle.columns) if oracle.columns else None
        if action == "ours":
            key = next(keys)
            values: dict[int, Any] = {0: key}
            row = {"id": key}
            for column in oracle.columns:
                row[column.name] = values[id(column)] = TYPES[column.kind][2](key)
            schema = table.info.schema
            table.round(None, pa.RecordBatch.from_pylist([row], schema=schema))
            oracle.by_column.append(values)
        elif action == "moved":
            key = next(keys)
            named = {"id": key} | {c.name: TYPES[c.kind][2](key) for c in oracle.columns}
            kinds = {"id": pa.int64()} | {c.name: _arrow(c, widened) for c in oracle.columns}
            shuffled = rng.sample(sorted(kinds), len(kinds))
            path = Path(table.info.location, "data", f"moved-{step}.parquet")
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({n: pa.array([named[n]], kinds[n]) for n in shuffled}), path)
            if not moved:
                for column in everyone:
                    column.names = {column.name} if column in oracle.columns else set()
                moved = True
            table.table().add_files([str(path)])
            oracle.by_name.append(named)
            for name, kind in kinds.items():
                held.setdefault(name, set()).add(kind)
        elif action == "add":
            new = Column(rng.choice(free), rng.randrange(len(TYPES)), set())
            if not _fits(new, new.name, widened, held):
                continue
            with table.table().update_schema() as update:
                update.add_column(new.name, TYPES[new.kind][0])
            oracle.columns.append(new)
            everyone.append(new)
            _assign(everyone, new)
        elif action == "rename":
            assert one is not None
            to = rng.choice(free)
            if not _fits(one, to, widened, held):
                continue
            with table.table().update_schema() as update:
                update.rename_column(one.name, to)
            one.name = to
            _assign(everyone, one)
        elif action == "drop":
            assert one is not None
            with table.table().update_schema() as update:
                update.delete_column(one.name)
            oracle.columns.remove(one)
        elif action == "widen":
            assert one is not None
            wider = WIDER.get(str(TYPES[one.kind][0]))
            if wider is not None and id(one) not in widened:
                with table.table().update_schema() as update:
                    update.update_column(one.name, wider)
                widened.add(id(one))
        reload()
        expected = oracle.rows()
        ours = table.read().sort_by("id").to_pylist()
        assert ours == expected, f"seed {seed}, step {step}: {action}"
    theirs = table.table().scan().to_arrow().sort_by("id").to_pylist()
    assert theirs == ours
