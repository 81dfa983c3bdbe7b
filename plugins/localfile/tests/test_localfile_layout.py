"""Paths, manifests and statistics: what is written comes back, whatever it holds, and damage is told by name."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import combinations, product
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit.manifests import FileEntry, Manifest
from laketier.kit.manifests.document import decode, encode
from laketier.kit.partition import OddPartitionValues, partition_text
from laketier.spi import (
    And,
    BucketSpec,
    CorruptTable,
    IncompatibleData,
    Leaf,
    Not,
    Op,
    Or,
    OutsideTable,
    PartitionField,
    Predicate,
    TableDescriptor,
)
from laketier_localfile.layout import (
    LAYOUT,
    NULL_PARTITION,
    base_name,
    escape,
    final_path,
    partition_folders,
    staged_path,
    superseded_path,
    unescape,
)
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.pruning import Range, outcomes
from laketier_localfile.pruning import decode as decode_value

values = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(values)
def test_escaping_is_one_to_one_and_gives_one_path_component(value: str) -> None:
    escaped = escape(value)
    assert unescape(escaped) == value
    assert unquote(escaped) == value, "as DuckDB, Spark, Polars and pyarrow decode it"
    assert "/" not in escaped
    assert "\0" not in escaped
    assert Path("t", f"k={escaped}").parts == ("t", f"k={escaped}")


@given(values, values)
def test_different_values_get_different_folders(one: str, other: str) -> None:
    assert (escape(one) == escape(other)) == (one == other)


@given(values, st.sampled_from(["..", ".", "/", "a/../../b", "k=v"]))
def test_no_value_leaves_the_table(value: str, evil: str) -> None:
    base = base_name(0, None, "a" * 32, 0)
    root = Path("/lake/db/t")
    for partition in ((("k", value),), (("k", evil + value),), (("k", evil),), (("..", value),)):
        try:
            path = final_path(staged_path(base), partition_folders(partition))
        except (IncompatibleData, OutsideTable):
            continue  # too long, or not to be told from null; or a folder that plain readers skip
        assert (root / path).resolve().is_relative_to(root)
        assert len((root / path).relative_to(root).parts) == 2


def test_what_a_folder_can_not_tell_apart_is_refused() -> None:
    assert partition_folders([("k", None)]) == [f"k={NULL_PARTITION}"]
    for value in ("", NULL_PARTITION):
        with pytest.raises(IncompatibleData, match="null"):
            partition_folders([("k", value)])
    with pytest.raises(IncompatibleData, match="255"):
        partition_folders([("k", "ü" * 127)])
    partition_folders([("k", "ü" * 126)])


@pytest.mark.parametrize(
    "path",
    ["__in_progress/../../etc/passwd", "/etc/passwd", "__in_progress/x", "part-0-a-0.parquet.inprogress",
     "__in_progress/part-..parquet.inprogress", "other/part-0-a-0.parquet.inprogress"],
)  # fmt: skip
def test_a_forged_result_names_no_file(path: str) -> None:
    with pytest.raises(OutsideTable, match="path of a"):
        final_path(path, ())


def test_a_name_without_the_end_of_a_staged_one_names_no_file() -> None:
    """It could be that of a file which is published already."""
    staged = staged_path(base_name(0, None, "a" * 32, 0))
    assert final_path(staged, ("r=1",)).startswith("r=1/")
    with pytest.raises(OutsideTable, match="is not the path of a staged file"):
        final_path(staged.removesuffix(".inprogress"), ("r=1",))


def test_the_three_places_of_a_file() -> None:
    base = base_name(3, 7, "a" * 32, 1)
    assert base == f"part-00003-b00007-{'a' * 32}-0001.parquet"
    final = final_path(staged_path(base), partition_folders([("r", "a/b"), ("d", None)]))
    assert final == f"r=a%2Fb/d={NULL_PARTITION}/{base}"
    assert staged_path(final) == f"__in_progress/{base}.inprogress"
    assert superseded_path(final) == f"__superseded/{base}.superseded"


MANIFEST = Manifest(
    table_uuid="u",
    number=7,
    previous="p" * 64,
    at=5,
    commit_id="c",
    kind="append",
    metadata_at=7,
    added=(
        FileEntry(
            "r=é/part-x.parquet",
            3,
            10,
            7,
            (("r", "é"), ("n", None)),
            2,
            {"footer": "ab", "stats": {"id": ("1", "3", 0), "r": (None, None, 1)}},
        ),
    ),
    watermarks={"p": "{}"},
    metadata=TableDescriptor(
        pa.schema([pa.field("day(ts)", pa.int64(), nullable=False), ("v", pa.list_(pa.float32(), 3))]),
        (PartitionField("day(ts)"),),
        BucketSpec(4, ("day(ts)",)),
        properties={"a": "b"},
        comment="c",
    ),
)


def test_a_manifest_comes_back_and_is_json() -> None:
    document = MANIFEST.encode()
    found = Manifest.decode(document, Path("m"), LAYOUT)
    assert found.sha256 == json.loads(document)["sha256"]
    assert found.encode() == document
    assert found.added == MANIFEST.added
    assert found.metadata == MANIFEST.metadata


@given(st.integers(0, len(MANIFEST.encode()) - 1), st.integers(1, 255))
def test_any_changed_byte_of_a_manifest_is_noticed(place: int, change: int) -> None:
    document = bytearray(MANIFEST.encode())
    document[place] ^= change
    with pytest.raises(CorruptTable, match="the-file"):
        Manifest.decode(bytes(document), Path("the-file"), LAYOUT)


@given(st.integers(0, len(MANIFEST.encode()) - 1))
def test_a_torn_manifest_is_noticed_at_every_length(length: int) -> None:
    with pytest.raises(CorruptTable, match="the-file"):
        Manifest.decode(MANIFEST.encode()[:length], Path("the-file"), LAYOUT)


def test_a_document_of_a_later_version_names_the_fix() -> None:
    with pytest.raises(CorruptTable, match="newer laketier"):
        decode(encode({"version": 9}), Path("m"), lambda body, _: body)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(True, pa.bool_()), (-5, pa.int64()), (2**64 - 1, pa.uint64()), (date(1, 1, 1), pa.date32()), ("a'b", pa.string()),
     (datetime(2026, 1, 2, 3, 4, 5, 6), pa.timestamp("us")), (Decimal("-1.20"), pa.decimal128(9, 2))],
)  # fmt: skip
def test_partition_text_comes_back(value: object, kind: pa.DataType) -> None:
    assert decode_value(partition_text(value), kind) == value


cells = st.one_of(st.none(), st.integers(-3, 3))
columns = st.sampled_from(["a", "b"])
numbers = st.integers(-3, 3)
leaves = st.one_of(
    st.builds(Leaf, columns, st.sampled_from([Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE]), numbers),
    st.builds(Leaf, columns, st.sampled_from([Op.IS_NULL, Op.NOT_NULL])),
    st.builds(Leaf, columns, st.just(Op.IN), st.lists(numbers, min_size=1, max_size=3).map(tuple)),
)
predicates = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=6), predicates)
def test_a_skipped_file_has_no_matching_row_and_a_sure_one_no_other(
    rows: list[tuple[int | None, int | None]], predicate: Predicate
) -> None:
    ranges = {}
    for i, name in enumerate(("a", "b")):
        present = [row[i] for row in rows if row[i] is not None]
        ranges[name] = Range(
            min(present, default=None), max(present, default=None), nulls=len(present) < len(rows), values=bool(present)
        )
    possible = outcomes(predicate, ranges)
    truths = {_truth(predicate, dict(zip("ab", row, strict=True))) for row in rows}
    assert truths <= possible


def test_every_comparison_with_every_small_range() -> None:
    pool = (None, 0, 1, 2)
    for size in range(1, 5):
        for held in combinations(pool, size):
            present = [cell for cell in held if cell is not None]
            low, high = min(present, default=None), max(present, default=None)
            known = Range(low, high, nulls=None in held, values=bool(present))
            for op, value in product([Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE], range(-1, 4)):
                leaf = Leaf("a", op, value)
                truths = {_truth(leaf, {"a": cell}) for cell in held}
                possible = outcomes(leaf, {"a": known})
                assert truths <= possible, (leaf, held)
                if len(present) == 1:
                    assert truths == possible, (leaf, held)


def _truth(predicate: Any, row: dict[str, Any]) -> bool | None:
    """SQL's three-valued logic, row by row."""
    match predicate:
        case Not(child):
            inner = _truth(child, row)
            return None if inner is None else not inner
        case And(children):
            inner = [_truth(child, row) for child in children]
            return False if False in inner else None if None in inner else True
        case Or(children):
            inner = [_truth(child, row) for child in children]
            return True if True in inner else None if None in inner else False
        case Leaf(column, op, value):
            cell = row[column]
            if op is Op.IS_NULL:
                return cell is None
            if op is Op.NOT_NULL:
                return cell is not None
            if cell is None:
                return None
            return {
                Op.EQ: lambda: cell == value, Op.NE: lambda: cell != value, Op.LT: lambda: cell < value,
                Op.LE: lambda: cell <= value, Op.GT: lambda: cell > value, Op.GE: lambda: cell >= value,
                Op.IN: lambda: cell in value,
            }[op]()  # fmt: skip


def test_what_python_compares_otherwise_is_never_judged() -> None:
    moment = datetime(2026, 1, 1)
    anything = frozenset({True, False, None})
    for value, low in ((moment, date(2026, 1, 1)), (date(2026, 1, 1), moment), (True, 1), (1.5, 1), ("1", 1)):
        assert outcomes(Leaf("a", Op.EQ, value), {"a": Range(low, low, nulls=False, values=True)}) == anything
    aware = moment.replace(tzinfo=(moment.astimezone() + timedelta()).tzinfo)
    assert outcomes(Leaf("a", Op.EQ, aware), {"a": Range(moment, moment, nulls=False, values=True)}) == anything


def test_a_list_without_values_is_false_for_nulls_too() -> None:
    for known in (Range(1, 2, nulls=True, values=True), Range(None, None, nulls=True, values=False)):
        assert outcomes(Leaf("a", Op.IN, ()), {"a": known}) == {False}
        assert outcomes(Not(Leaf("a", Op.IN, ())), {"a": known}) == {True}


def test_prefixes() -> None:
    known = {"a": Range("abc", "abf", nulls=False, values=True)}
    assert outcomes(Leaf("a", Op.STARTS_WITH, "ab"), known) == {True}
    assert outcomes(Leaf("a", Op.STARTS_WITH, "abd"), known) == {True, False}
    assert outcomes(Leaf("a", Op.STARTS_WITH, "b"), known) == {False}
    assert outcomes(Leaf("a", Op.STARTS_WITH, "abcd"), known) == {True, False}
    assert outcomes(Leaf("a", Op.STARTS_WITH, ""), known) == {True}


@pytest.mark.parametrize("value", ["", NULL_PARTITION, "ü" * 300])
def test_odd_partition_values_end_a_round_until_the_user_accepts_them(make_table, value):
    """The folder is named by a digest then, and the value is in the file, where every reader that looks there finds
    it."""
    rows = [{"id": 1, "region": value}, {"id": 2, "region": "x"}, {"id": 3, "region": None}]
    refusing = make_table(partition_by=("region",))
    refusing.create()
    with pytest.raises(IncompatibleData, match=r"lake\.localfile\.odd-partition-values = accept"):
        refusing.stage(rows)
    table = make_table(
        partition_by=("region",), options=LocalFileOptions(odd_partition_values=OddPartitionValues.ACCEPT)
    )
    table.round(0, rows)
    assert table.scan().sort_by("id").to_pylist() == rows
    assert table.scan(filters=(Leaf("region", Op.EQ, value),))["id"].to_pylist() == [1]
    plain = duckdb.read_parquet([str(path) for path in table.plain_files()], hive_partitioning=False)
    assert plain.order("id").fetchall() == [(1, value), (2, "x"), (3, None)]
    assert len({path.parent.name for path in table.plain_files()}) == 3
    assert table.storage.maintenance(table.info).orphans(0) == []
