from __future__ import annotations

import pyarrow as pa
import pytest

from laketier.spi import And, DataclassSerializer, Leaf, Not, Op, Or, Predicate, columns_of, to_arrow

NAN = float("nan")
TABLE = pa.table({"n": pa.array([1, 2, None, 4]), "s": ["ab", None, "b", "abc"], "f": [1.0, NAN, None, -1.0]})


@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        (Leaf("n", Op.EQ, 2), [1]),
        (Leaf("n", Op.NE, 2), [0, 3]),
        (Leaf("n", Op.LT, 2), [0]),
        (Leaf("n", Op.LE, 2), [0, 1]),
        (Leaf("n", Op.GT, 2), [3]),
        (Leaf("n", Op.GE, 2), [1, 3]),
        (Leaf("n", Op.IN, (1, 4, None)), [0, 3]),
        (Leaf("n", Op.IN, ()), []),
        (Leaf("n", Op.IS_NULL), [2]),
        (Leaf("n", Op.NOT_NULL), [0, 1, 3]),
        (Leaf("s", Op.STARTS_WITH, "ab"), [0, 3]),
        (Leaf("f", Op.IS_NULL), [2]),
        (Leaf("f", Op.LT, 0.0), [3]),
        (Not(Leaf("n", Op.EQ, 2)), [0, 3]),
        (Not(Leaf("n", Op.IN, (1, 4))), [1]),
        (Not(Leaf("n", Op.IN, (1, None))), []),
        (Not(Not(Leaf("n", Op.IN, (1, None)))), [0]),
        (Not(Leaf("s", Op.IN, ("b",))), [0, 3]),
        (Not(Leaf("f", Op.IN, (1.0,))), [1, 3]),
        (Not(And((Leaf("n", Op.IN, (1, 4)), Leaf("n", Op.NOT_NULL)))), [1, 2]),
        (And((Leaf("n", Op.GE, 1), Leaf("s", Op.NOT_NULL))), [0, 3]),
        (Or((Leaf("n", Op.EQ, 1), Leaf("s", Op.EQ, "b"))), [0, 2]),
    ],
    ids=str,
)
def test_null_is_not_true(predicate: Predicate, rows: list[int]) -> None:
    numbered = TABLE.append_column("row", pa.array(range(4)))
    assert numbered.filter(to_arrow(predicate))["row"].to_pylist() == rows


def test_columns() -> None:
    tree = And((Leaf("a", Op.IS_NULL), Or((Not(Leaf("b", Op.EQ, 1)), Leaf("a", Op.EQ, 2)))))
    assert columns_of([tree, Leaf("c", Op.NOT_NULL)]) == {"a", "b", "c"}


def test_a_leaf_travels() -> None:
    serializer = DataclassSerializer(Leaf)
    leaf = Leaf("a", Op.EQ, "x")
    assert serializer.deserialize(1, serializer.serialize(leaf)) == leaf
