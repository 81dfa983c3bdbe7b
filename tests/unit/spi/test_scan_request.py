"""What a source is asked for is checked in one place."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import ConfigError, Leaf, Op, ScanRequest

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
        ({"columns": "id"}, "and no names"),
        ({"columns": (1,)}, "and no names"),
        ({"columns": ("id", "name", "id")}, "column 'id' of a scan is named twice"),
        ({"limit": 1.5}, "limit of a scan is 1.5, and no whole number"),
        ({"limit": True}, "limit of a scan is True, and no whole number"),
        ({"limit": -1}, "the limit of a scan is -1"),
        ({"snapshot_id": "1"}, "snapshot_id of a scan is '1', and no whole number"),
        ({"as_of": 0.0}, "as_of of a scan is 0.0, and no whole number"),
    ],
)
def test_values_of_other_shapes_are_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)):
        ScanRequest(**asked)
