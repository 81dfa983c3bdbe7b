from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit import partition
from laketier.kit.partition import partition_text, split_by_values
from laketier.spi import IncompatibleData


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("a/b=c", "a/b=c"),
        ("", ""),
        (True, "true"),
        (False, "false"),
        (-42, "-42"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 11, 21), "2026-11-21"),
        (datetime(2026, 11, 21, 8, 30), "2026-11-21 08:30:00"),
        (datetime(2026, 11, 21, 8, 30, 0, 1), "2026-11-21 08:30:00.000001"),
        (datetime(2026, 11, 21, 8, 30, tzinfo=UTC), "2026-11-21 08:30:00"),
        (datetime(2026, 11, 21, 8, 30, tzinfo=timezone(timedelta(hours=2))), "2026-11-21 06:30:00"),
    ],
)
def test_canonical_text(value: Any, text: str | None) -> None:
    assert partition_text(value) == text


@pytest.mark.parametrize("value", [1.5, b"x", [1], {"a": 1}])
def test_values_that_name_no_partition(value: Any) -> None:
    with pytest.raises(IncompatibleData, match="can't be a partition value"):
        partition_text(value)


keys = st.tuples(st.sampled_from([None, "", "a", "b"]), st.sampled_from([None, 0, 1, 2]))


@given(st.lists(keys, max_size=40), st.integers(1, 7))
def test_rows_keep_their_partition_and_their_order(rows: list[tuple[Any, Any]], chunk: int) -> None:
    batches = [
        pa.record_batch(
            {
                "s": pa.array([s for s, _ in rows[i : i + chunk]], pa.string()),
                "n": pa.array([n for _, n in rows[i : i + chunk]], pa.int32()),
                "row": pa.array(range(i, min(i + chunk, len(rows))), pa.int64()),
            }
        )
        for i in range(0, len(rows), chunk)
    ]
    schema = pa.schema([("s", pa.string()), ("n", pa.int32()), ("row", pa.int64())])
    table = pa.Table.from_batches(batches, schema=schema)
    expected: dict[tuple[Any, Any], list[int]] = defaultdict(list)
    for number, key in enumerate(rows):
        expected[key].append(number)
    parts = [(values, part) for values, part in split_by_values(table, [table["s"], table["n"]])]
    assert {values: part["row"].to_pylist() for values, part in parts} == expected
    assert len(parts) == len(expected)
    for values, part in parts:
        assert set(zip(part["s"].to_pylist(), part["n"].to_pylist(), strict=True)) == {values}


def test_keys_with_more_combinations_than_64_bits_are_told_apart() -> None:
    """40 values of each of 12 keys make 40 ** 12 of them, and 40 rows have 40."""
    table = pa.table({f"k{key}": [f"{key}-{row}" for row in range(40)] * 2 for key in range(12)})
    found = dict(split_by_values(table, table.columns))
    assert len(found) == 40
    for values, part in found.items():
        assert [tuple(row.values()) for row in part.to_pylist()] == [values] * 2


def test_the_hour_that_a_zone_has_twice_is_two_partitions() -> None:
    """Who keeps the parts by their values, as writers of files do, would take one for the other."""
    moments = [datetime(2026, 11, 1, hour, 30, tzinfo=UTC) for hour in (5, 6)]
    table = pa.table({"at": pa.array(moments, pa.timestamp("us", "America/New_York"))})
    parts = split_by_values(table, table.columns)
    found = {values: part["at"].cast(pa.timestamp("us", "UTC")).to_pylist() for values, part in parts}
    assert found == {(moment,): [moment] for moment in moments}


def test_one_partition_is_not_copied() -> None:
    table = pa.table({"k": ["a"] * 10})
    ((values, part),) = split_by_values(table, [table["k"]])
    assert values == ("a",)
    assert part is table


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.list_(pa.string())], ids=str)
def test_a_part_keeps_the_others_out_of_memory(kind: pa.DataType) -> None:
    """Who keeps one part until more rows come for it keeps its rows alone."""
    value = ["x" * 100] if pa.types.is_list(kind) else "x" * 100
    table = pa.table({"k": ["a", "b", *["c"] * 1000], "pad": pa.array([value] * 1002, kind)})
    kept = {values: part.get_total_buffer_size() for values, part in split_by_values(table, [table["k"]])}
    assert kept["a",] < 500
    assert kept["b",] < 500
    assert kept["c",] > 100_000


def test_a_table_with_more_than_an_array_can_hold_is_split_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are sorted as one array a column, whose texts end at 2 GiB."""
    table = pa.table({"k": [i % 3 for i in range(100)], "text": ["x" * 1000] * 100, "row": range(100)})
    monkeypatch.setattr(partition, "_MOST_BYTES", 10_000)
    largest, found = 0, defaultdict(list)
    for (value,), part in split_by_values(table, [table["k"]]):
        largest = max(largest, part.nbytes)
        found[value] += part["row"].to_pylist()
    assert largest <= 10_000
    assert found == {k: list(range(k, 100, 3)) for k in range(3)}
    (((value,), part),) = split_by_values(table.slice(0, 1), [table["k"].slice(0, 1)])
    assert (value, part.num_rows) == (0, 1)
