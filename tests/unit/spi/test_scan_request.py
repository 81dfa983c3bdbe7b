"""What a source is asked for is checked in one place."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import And, ConfigError, Leaf, Not, Op, Or, Predicate, ScanRequest, to_arrow
from laketier.spi.predicate import MOST_DEPTH

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("at", pa.date32())])


@pytest.mark.parametrize(
    ("columns", "names"),
    [(None, ["id", "name", "at"]), (("at", "id"), ["at", "id"]), ((), [])],
)
def test_the_columns_wanted_in_their_order(columns: tuple[str, ...] | None, names: list[str]) -> None:
    projected = ScanRequest(columns=columns, filters=(Leaf("name", Op.EQ, "x"),)).projected(SCHEMA, where="db.t")
    assert projected.equals(pa.schema([SCHEMA.field(name) for name in names]))


@pytest.mark.parametrize(
    "request_",
    [
        ScanRequest(columns=("id", "b", "a")),
        ScanRequest(columns=("id",), filters=(Leaf("a", Op.EQ, 1), Leaf("b", Op.EQ, 1))),
    ],
    ids=["columns", "filters"],
)
def test_unknown_columns_are_named(request_: ScanRequest) -> None:
    with pytest.raises(ConfigError, match=r"db\.t: the snapshot has no columns \['a', 'b'\]\. It has id, name, at"):
        request_.projected(SCHEMA, where="db.t")


def test_a_snapshot_and_a_moment_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="Give one of them"):
        ScanRequest(snapshot_id=1, as_of=1)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"columns": "id"}, "columns is the text 'id'"),
        ({"columns": b"id"}, "columns is a bytes, b'id'"),
        ({"columns": 5}, "columns is a int, 5"),
        ({"columns": {"id", "name"}}, "columns is a set, {"),
        ({"columns": (1,)}, "and no names"),
        ({"columns": ("id", "name", "id")}, "column 'id' of a scan is named twice"),
        ({"limit": 1.5}, "limit of a scan is 1.5, and no whole number"),
        ({"limit": True}, "limit of a scan is True, and no whole number"),
        ({"limit": -1}, "the limit of a scan is -1"),
        ({"snapshot_id": "1"}, "snapshot_id of a scan is '1', and no whole number"),
        ({"filters": "id = 1"}, "filters is 'id = 1', a str"),
        ({"filters": 5}, "filters is 5, a int"),
        ({"filters": Leaf("id", Op.EQ, 1)}, "filters is Leaf("),
        ({"filters": ["id = 1"]}, "a filter is 'id = 1', and no predicate"),
        ({"as_of": 0.0}, "as_of of a scan is 0.0, and no whole number"),
    ],
)
def test_values_of_other_shapes_are_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)):
        ScanRequest(**asked)


def test_lists_and_iterators_are_taken() -> None:
    """An iterator was read by the check, so the scan had no columns or filters left."""
    leaf = Leaf("id", Op.EQ, 1)
    asked = ScanRequest(columns=iter(["id", "name"]), filters=iter([leaf]))  # type: ignore[arg-type]
    assert asked == ScanRequest(columns=["id", "name"], filters=[leaf])  # type: ignore[arg-type]
    assert (asked.columns, asked.filters) == (("id", "name"), (leaf,))


@pytest.mark.parametrize("kind", [And, Or])
def test_conditions_that_are_joined_one_by_one_are_not_nested(kind: type[And | Or]) -> None:
    """Each joined to what is there: 2,000 of them were more calls within calls than Python has."""
    leaves = [Leaf("id", Op.NE, number) for number in range(2_000)]
    joined: Predicate = leaves[0]
    for leaf in leaves[1:]:
        joined = kind((joined, leaf))
    assert joined == kind(tuple(leaves))
    assert ScanRequest(filters=(joined,)).filters == (joined,)
    other = Or if kind is And else And
    assert kind((other((leaves[0], leaves[1])), leaves[2])).children == (other((leaves[0], leaves[1])), leaves[2])


def _nested(depth: int) -> Predicate:
    found: Predicate = Leaf("id", Op.EQ, 1)
    for level in range(depth - 1):
        found = (And if level % 2 else Or)((found, Leaf("id", Op.GT, level)))
    return found


def test_a_filter_is_nested_so_deep_and_no_deeper() -> None:
    deepest = _nested(MOST_DEPTH)
    assert ScanRequest(filters=(deepest,)).filters == (deepest,)
    to_arrow(deepest, SCHEMA)
    for deeper in (Not(deepest), _nested(5_000)):
        with pytest.raises(ConfigError, match=f"nested more than {MOST_DEPTH} deep"):
            ScanRequest(filters=(Leaf("id", Op.EQ, 1), deeper))


@pytest.mark.parametrize("value", ["a\udc80", ("a", "\ud800")])
def test_what_is_no_text_is_compared_with_nothing(value: object) -> None:
    op = Op.EQ if isinstance(value, str) else Op.IN
    with pytest.raises(ConfigError, match=r"column 'name' is compared with text that is none: '(a.udc80|.ud800)'"):
        ScanRequest(filters=(Not(Leaf("name", op, value)),))
