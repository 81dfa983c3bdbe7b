"""Per key the newest change wins, and deletes remove."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laketier.rounds import changes
from laketier.rounds.changes import LatestChanges, check_key, matching_keys, refused_changes, without_keys
from laketier.spi import ConfigError, IncompatibleData, UnsupportedType

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("region", pa.string(), nullable=False),
        pa.field("v", pa.struct([("list", pa.list_(pa.int64()))]), nullable=False),
    ]
)
CHANGES = SCHEMA.append(pa.field("op", pa.string()))
Change = tuple[int, str, int, str]


def batch_of(rows: Sequence[Change]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"k": k, "region": r, "v": None if op == "-D" else {"list": [v]}, "op": op} for k, r, v, op in rows],
        schema=CHANGES,
    )


def as_dict(rows: pa.Table) -> dict[tuple[int, str], int]:
    return {(row["k"], row["region"]): row["v"]["list"][0] for row in rows.to_pylist()}


CHANGE = st.tuples(st.integers(0, 4), st.sampled_from("ab"), st.integers(0, 99), st.sampled_from(changes.CHANGE_TYPES))


@settings(deadline=None)
@given(st.lists(st.lists(CHANGE, max_size=8), max_size=8), st.integers(1, 6))
def test_the_latest_changes_are_those_of_a_dict(log: list[list[Change]], pending: int) -> None:
    """Whatever the batches, and however often it compacts."""
    before, changes._PENDING_ROWS = changes._PENDING_ROWS, pending
    try:
        latest = LatestChanges(CHANGES, ("k", "region"), "op")
        model: dict[tuple[int, str], int] = {}
        touched: set[tuple[int, str]] = set()
        for rows in log:
            latest.add(batch_of(rows))
            for k, region, v, op in rows:
                if op == "-U":
                    continue
                touched.add((k, region))
                model.pop((k, region), None)
                if op != "-D":
                    model[k, region] = v
        found = latest.rows()
        assert found.schema == SCHEMA
        assert list(as_dict(found).items()) == list(model.items()), "in the order of the log, too"
        assert found.num_rows == len(model)
        keys = latest.keys.to_pylist()
        assert {(row["k"], row["region"]) for row in keys} == touched
        assert len(keys) == len(touched)
    finally:
        changes._PENDING_ROWS = before


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("ab"))),
    st.sets(st.tuples(st.integers(0, 5), st.sampled_from("ab"))),
)
def test_rows_of_other_keys_stay_in_their_order(rows: list[tuple[int, str]], keys: set[tuple[int, str]]) -> None:
    batch = batch_of([(k, region, index, "+I") for index, (k, region) in enumerate(rows)])
    wanted = pa.table(
        {"region": pa.array([r for _, r in keys], pa.string()), "k": pa.array([k for k, _ in keys], pa.int64())}
    )
    left = without_keys(batch, wanted)
    assert left.schema == batch.schema
    expected = [(row, index) for index, row in enumerate(rows) if row not in keys]
    assert [((r["k"], r["region"]), r["v"]["list"][0] if r["v"] else None) for r in left.to_pylist()] == expected
    matched = {(row["k"], row["region"]) for row in matching_keys(batch, wanted).to_pylist()}
    assert matched == keys & set(rows)


def test_without_a_change_column_every_row_is_an_upsert() -> None:
    latest = LatestChanges(SCHEMA, ("k",), None)
    rows = batch_of([(1, "a", 1, "+I"), (1, "b", 2, "+I")]).select(SCHEMA.names)
    latest.add(rows.cast(SCHEMA))
    assert as_dict(latest.rows()) == {(1, "b"): 2}


def test_what_is_held_is_bounded_by_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_PENDING_ROWS", 100)
    latest = LatestChanges(CHANGES, ("k", "region"), "op")
    for value in range(200):
        latest.add(batch_of([(key, "a", value, "+U") for key in range(10)]))
        assert latest._latest.num_rows + latest._pending_rows <= 2 * 100
    assert as_dict(latest.rows()) == {(key, "a"): 199 for key in range(10)}


@pytest.mark.parametrize(("rows", "bytes"), [(1_000_000, 50_000), (10, 1_000_000_000)])
def test_what_is_held_is_bounded_by_rows_and_by_bytes(monkeypatch: pytest.MonkeyPatch, rows: int, bytes: int) -> None:
    monkeypatch.setattr(changes, "_PENDING_ROWS", rows)
    monkeypatch.setattr(changes, "_PENDING_BYTES", bytes)
    schema = pa.schema([("k", pa.int64()), ("text", pa.string())])
    latest = LatestChanges(schema, ["k"], None)
    before = pa.total_allocated_bytes()
    for number in range(50):
        latest.add(pa.record_batch({"k": pa.array([1, 2]), "text": ["x" * 10_000, str(number)]}, schema=schema))
        assert pa.total_allocated_bytes() - before < 300_000
    assert latest.rows()["text"].to_pylist() == ["x" * 10_000, "49"]


def test_changes_of_several_looks_are_all_held(monkeypatch: pytest.MonkeyPatch) -> None:
    latest = LatestChanges(CHANGES, ["k", "region"], "op")
    latest.add(batch_of([(1, "a", 1, "+I"), (2, "a", 2, "+I")]))
    assert latest.keys.num_rows == 2
    latest.add(batch_of([(2, "a", 3, "+U"), (3, "a", 4, "+I")]))
    latest.add(batch_of([]))
    latest.add(batch_of([(1, "a", 1, "-U")]))
    assert latest.keys["k"].to_pylist() == [1, 2, 3]
    assert as_dict(latest.rows()) == {(1, "a"): 1, (2, "a"): 3, (3, "a"): 4}
    assert latest.rows().schema.names == SCHEMA.names, "without the change types"


@pytest.mark.parametrize(
    "keys",
    [
        pa.array(["x", "y"]).dictionary_encode(),
        pa.array(["x", "y"], pa.string_view()),
        pa.array([b"x", b"y"], pa.binary_view()),
        pa.array([b"x", b"y"]).dictionary_encode(),
        pa.array(["x", "y"], pa.large_string()),
    ],
    ids=lambda keys: str(keys.type),
)
def test_keys_of_any_make_are_found_beside_plain_ones(keys: pa.Array) -> None:
    """Arrow filters no views, so what is filtered is plain."""
    one, other = (each.as_py() for each in keys)
    rows = pa.record_batch({"k": [other, one, other], "v": [1, 2, 3]})
    table = pa.table({"k": keys})
    assert without_keys(rows, table.slice(1))["v"].to_pylist() == [2]
    assert matching_keys(table.slice(0, 1), pa.table({"k": [one, other]}))["k"].to_pylist() == [one]
    if not (pt.is_string_view(keys.type) or pt.is_binary_view(keys.type)):
        made = pa.record_batch({"k": keys, "v": [1, 2]})
        assert without_keys(made, pa.table({"k": [one]}))["v"].to_pylist() == [2]
        assert without_keys(made, table.slice(1))["v"].to_pylist() == [1]


def test_dictionaries_whose_parts_differ_meet() -> None:
    """As of several files: Arrow can't unify them where it groups and joins."""
    parts = [pa.array(values).dictionary_encode() for values in (["x", "y"], ["y", "z"])]
    keys = pa.table({"k": pa.chunked_array(parts)})
    rows = pa.record_batch({"k": pa.array(["w", "z"]).dictionary_encode(), "v": [1, 2]})
    assert without_keys(rows, keys)["v"].to_pylist() == [1]
    assert matching_keys(rows, keys)["k"].to_pylist() == ["z"]
    latest = LatestChanges(rows.schema, ["k"], None)
    for number, part in enumerate(parts):
        latest.add(pa.record_batch({"k": part, "v": [number, number]}))
    assert latest.rows().to_pydict() == {"k": ["x", "y", "z"], "v": [0, 1, 1]}


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_change_types_may_be_text_of_any_make(kind: pa.DataType) -> None:
    latest = LatestChanges(CHANGES, ("k", "region"), "op")
    rows = batch_of([(1, "a", 1, "+I"), (2, "a", 2, "+I"), (1, "a", 1, "-U"), (1, "a", 0, "-D"), (2, "a", 3, "+U")])
    at = rows.schema.get_field_index("op")
    latest.add(rows.set_column(at, "op", rows.column(at).cast(kind)))
    assert as_dict(latest.rows()) == {(2, "a"): 3}


@pytest.mark.parametrize(("rows", "bytes"), [(1, 1 << 40), (1 << 40, 1)])
def test_keys_that_are_all_new_are_put_together_ever_less_often(
    monkeypatch: pytest.MonkeyPatch, rows: int, bytes: int
) -> None:
    """Each time costs as much as all that is held: with as many times as batches, a round would never end."""
    monkeypatch.setattr(changes, "_PENDING_ROWS", rows)
    monkeypatch.setattr(changes, "_PENDING_BYTES", bytes)
    held: list[int] = []
    compact = LatestChanges._compact

    def counted(self: LatestChanges) -> None:
        compact(self)
        held.append(self._latest.num_rows)

    monkeypatch.setattr(LatestChanges, "_compact", counted)
    latest = LatestChanges(pa.schema([("k", pa.int64())]), ["k"], None)
    for number in range(128):
        latest.add(pa.record_batch({"k": pa.array([number], pa.int64())}))
    assert held == sorted(set(held))
    assert 7 <= len(held) <= 9, "each time, twice as many"


def test_a_slice_does_not_keep_the_batch_that_it_was_cut_from() -> None:
    latest = LatestChanges(CHANGES, ("k", "region"), "op")
    latest.add(batch_of([(key, "a", 0, "+I") for key in range(10_000)]).slice(5, 1))
    assert latest.rows().get_total_buffer_size() < 1000


@pytest.mark.parametrize(
    "key",
    [
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array([b"a", None, b"b"], pa.large_binary()),
        pa.array([b"aa", None, b"bb"], pa.binary(2)),
        pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.00")], pa.decimal128(9, 2)),
        pa.array([True, None, False]),
        pa.array([dt.date(2026, 1, 1), None, dt.date(1969, 1, 1)]),
        pa.array([1, None, 2], pa.timestamp("us", tz="UTC")),
        pa.array([1, None, 2], pa.time64("us")),
        pa.array([1, None, 2], pa.uint8()),
    ],
    ids=lambda array: str(array.type),
)
def test_types_of_keys(key: pa.Array) -> None:
    rows = pa.record_batch({"k": key, "v": pa.array([1, 2, 3])})
    wanted = pa.table({"k": key.slice(2, 1)})
    assert without_keys(rows, wanted).column("v").to_pylist() == [1, 2], "null is no key"
    latest = LatestChanges(rows.schema, ("k",), None)
    for index in (0, 2, 0):
        latest.add(rows.slice(index, 1))
    assert sorted(latest.rows()["v"].to_pylist()) == [1, 3]


def test_keys_of_a_wider_type_meet() -> None:
    rows = pa.record_batch({"k": pa.array([1, 2], pa.int64())})
    assert without_keys(rows, pa.table({"k": pa.array([2], pa.int32())})).to_pydict() == {"k": [1]}


def test_views_and_dictionaries_are_fitted_to_the_table() -> None:
    latest = LatestChanges(pa.schema([("k", pa.string()), ("v", pa.string())]), ("k",), "op")
    kinds = pa.array(["+I", "-U", "+U"]).dictionary_encode()
    values = pa.array(["1", "1", "2"], pa.string_view())
    latest.add(pa.record_batch({"op": kinds, "v": values, "k": pa.array(["a", "a", "a"], pa.string_view())}))
    assert latest.rows().to_pydict() == {"k": ["a"], "v": ["2"]}


def test_a_null_in_the_key_is_told() -> None:
    latest = LatestChanges(SCHEMA, ("k", "region"), None)
    with pytest.raises(IncompatibleData, match="1 rows have null in 'region', which is part of the primary key"):
        latest.add(pa.record_batch({"k": [1, 2], "region": ["a", None], "v": [{"list": [1]}] * 2}))


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array(["+I", "D"]), "column 'op' has 'D', which is no change type"),
        (pa.array(["+I", None]), "column 'op' has null, which is no change type"),
        (pa.array([0, 1]), "column 'op' is int64, and is to hold the change types"),
    ],
)
def test_odd_change_types_are_told(column: pa.Array, said: str) -> None:
    latest = LatestChanges(pa.schema([("k", pa.int64())]), ("k",), "op")
    with pytest.raises(IncompatibleData, match=said):
        latest.add(pa.record_batch({"k": [1, 2], "op": column}))


def test_a_missing_change_column_is_told() -> None:
    latest = LatestChanges(pa.schema([("k", pa.int64())]), ("k",), "op")
    with pytest.raises(IncompatibleData, match="no column 'op'"):
        latest.add(pa.record_batch({"k": [1, 2]}))


def test_keys_that_can_not_be_compared_are_refused() -> None:
    for kind in (pa.float64(), pa.list_(pa.int64()), pa.null()):
        with pytest.raises(UnsupportedType, match="can't be part of a primary key"):
            check_key(pa.schema([("k", kind)]), ("k",))
    with pytest.raises(ConfigError, match="no column 'x'"):
        check_key(SCHEMA, ("k", "x"))
    with pytest.raises(ConfigError, match="is empty"):
        check_key(SCHEMA, ())
    with pytest.raises(ConfigError, match="no column 'x'"):
        LatestChanges(SCHEMA, ("k", "x"), None)


def test_rows_that_are_no_change_are_found_by_their_place() -> None:
    batch = pa.record_batch(
        {
            "id": [1, None, 3, None, None, 6],
            "op": pa.array(["+I", "+U", "r", "-U", None, "-D"]).dictionary_encode(),
        }
    )
    assert refused_changes(batch, ("id",), "op") == {
        1: "it has null in 'id', which is part of the primary key",
        2: "column 'op' has 'r', which is no change type",
        4: "column 'op' has null, which is no change type",
    }
    assert list(refused_changes(batch, ("id",), None)) == [1, 3, 4], "without change types each row is an upsert"
    assert refused_changes(batch.slice(5), ("id",), "op") == {}
    assert refused_changes(batch.slice(0, 0), ("id",), "op") == {}


def _latest_of(latest: LatestChanges, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    for batch in batches:
        latest.add(batch)
    return latest.rows()


@pytest.mark.parametrize("pending", [1, 100])
def test_two_rows_of_a_key_that_have_no_order_are_refused(monkeypatch: pytest.MonkeyPatch, pending: int) -> None:
    """Either would be a guess; of rows that are the same none is."""
    monkeypatch.setattr(changes, "_PENDING_ROWS", pending)
    latest = LatestChanges(CHANGES, ("k", "region"), "op", unordered=True)
    for _ in range(2):
        latest.add(batch_of([(1, "a", 1, "+I"), (2, "a", 2, "+I"), (1, "b", 3, "+I"), (1, "a", 1, "+I")]))
    assert as_dict(latest.rows()) == {(1, "a"): 1, (2, "a"): 2, (1, "b"): 3}
    for other in ((1, "b", 4, "+I"), (1, "b", 3, "-D")):
        latest = LatestChanges(CHANGES, ("k", "region"), "op", unordered=True)
        rows = [batch_of([(1, "b", 3, "+I")]), batch_of([(3, "a", 1, "+I"), other])]
        with pytest.raises(IncompatibleData, match=r"same primary key, \{'k': 1, 'region': 'b'\}"):
            _latest_of(latest, rows)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([float("nan")]), pa.array([0.5])),
        (pa.array([[float("nan")]]), pa.array([[0.5]])),
        (pa.array(["a"], pa.string_view()), pa.array(["b"], pa.string_view())),
        (
            pa.array([{"x": "a"}], pa.struct([("x", pa.string_view())])),
            pa.nulls(1, pa.struct([("x", pa.string_view())])),
        ),
        (pa.array([1_001], pa.timestamp("ns")), pa.array([1_002], pa.timestamp("ns"))),
    ],
    ids=lambda array: str(array.type),
)
def test_rows_without_an_order_are_the_same_whatever_their_types(one: pa.Array, other: pa.Array) -> None:
    """A NaN is no other value than a NaN, and Arrow takes no views."""
    schema = pa.schema([("k", pa.int64()), ("v", one.type)])
    batches = [pa.record_batch([pa.array([7]), values], schema=schema) for values in (one, one, other)]
    latest = LatestChanges(schema, ("k",), None, unordered=True)
    for batch in batches[:2]:
        latest.add(batch)
    assert latest.rows().num_rows == 1
    latest.add(batches[2])
    with pytest.raises(IncompatibleData, match=r"same primary key, \{'k': 7\}"):
        latest.rows()
