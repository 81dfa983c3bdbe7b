"""What is decided about indexes by names, numbers and settings alone, one by one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest

from laketier.kit import LocalFolder
from laketier.spi import (
    BuiltIndexPart,
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    IndexKind,
    IndexMode,
    IndexPart,
    IndexPlan,
    IndexResources,
    IndexSpec,
    Nearest,
    OutsideTable,
    SerializationError,
    TableChanged,
    TableError,
)
from laketier_lance import index_columns, index_settings
from laketier_lance.graph_walk import enough_candidates, kept_candidates
from laketier_lance.index_builder import (
    LanceIndexBuilder,
    _dictionary,
    _told,
    _without_hints,
    unpacked,
)
from laketier_lance.index_columns import _FITS, _advice, check_alone, check_column, check_mode
from laketier_lance.index_folders import INDICES, empty_folders
from laketier_lance.index_info import covered_by, segments_in_order
from laketier_lance.index_parts import balanced, groups_to_merge
from laketier_lance.index_record import RECORD, _files, forget_records, records, taken_over, write_record
from laketier_lance.index_resources import check_resources, is_merged_within, pooled, text_limits, variables
from laketier_lance.index_results import BuiltSegment, BuiltSettings
from laketier_lance.index_resume import parts_that_fit, without
from laketier_lance.index_settings import (
    LANCE_KINDS,
    as_it_is,
    check_options,
    described_settings,
    has_codebook,
    has_graph,
    is_vector,
    kind_of,
    settled,
    told_settings,
    why_whole,
)
from laketier_lance.index_units import deletions, fragment_of, unit_rows
from laketier_lance.options import DataStorageVersion, LanceOptions
from laketier_lance.vector_model import VectorModel, _packed_varints, _tensor

MIB = 1024**2
SEGMENT = "0a1b2c3d-0000-4000-8000-0123456789ab"
WORDS = IndexSpec("x", "doc", IndexKind.INVERTED, {"with_position": True})
IDS = IndexSpec("x", "id", IndexKind.BTREE)
NEAR = IndexSpec("x", "v", IndexKind.IVF_FLAT, {"metric": "l2"})
VECTOR_KINDS = [kind for kind in LANCE_KINDS if kind.value.startswith("ivf-")]


# -- settings --------------------------------------------------------------------------------------------------------


def test_what_kinds_are() -> None:
    assert [is_vector(kind) for kind in (None, IndexKind.BTREE, IndexKind.IVF_PQ)] == [False, False, True]
    assert {kind for kind in LANCE_KINDS if has_codebook(kind)} == {IndexKind.IVF_PQ, IndexKind.IVF_HNSW_PQ}
    graphs = {IndexKind.IVF_HNSW_FLAT, IndexKind.IVF_HNSW_PQ, IndexKind.IVF_HNSW_SQ}
    assert {kind for kind in LANCE_KINDS if has_graph(kind)} == graphs
    for told, kind in (
        ("BTree", IndexKind.BTREE),
        ("IVF_HNSW_PQ", IndexKind.IVF_HNSW_PQ),
        ("LabelList", IndexKind.LABEL_LIST),
    ):
        assert kind_of(SimpleNamespace(index_type=told)) is kind
    assert kind_of(SimpleNamespace(index_type="IVF_RQ")) is None


@pytest.mark.parametrize("kind", list(LANCE_KINDS))
@pytest.mark.parametrize("metric", ["l2", "dot"])
def test_which_indexes_are_built_in_one_part(kind: IndexKind, metric: str) -> None:
    why = why_whole(IndexSpec("x", "v", kind, {"metric": metric} if is_vector(kind) else {}))
    if kind in (IndexKind.IVF_SQ, IndexKind.IVF_HNSW_SQ):
        assert "scales the codes" in why
    elif kind in (IndexKind.IVF_PQ, IndexKind.IVF_HNSW_PQ) and metric == "dot":
        assert "metric is dot" in why
    else:
        assert why == ""


@pytest.mark.parametrize("kind", list(LANCE_KINDS))
def test_which_options_a_kind_has(kind: IndexKind) -> None:
    given: dict[str, Any] = {}
    if kind is IndexKind.INVERTED:
        given = {"base_tokenizer": "simple", "with_position": True, "max_token_length": 3}
    if is_vector(kind):
        given = {"metric": "l2", "num_partitions": 1, "sample_rate": 2, "max_iters": 3}
    if has_codebook(kind):
        given |= {"num_sub_vectors": 1, "num_bits": 8}
    if has_graph(kind):
        given |= {"m": 2, "ef_construction": 2, "max_level": 1}
    check_options(IndexSpec("x", "c", kind, given))
    every = {"with_position": True, "metric": "l2", "num_bits": 8, "m": 2, "nobody": 1}
    for name in every.keys() - given.keys():
        with pytest.raises(ConfigError, match=f"has no option '{name}'"):
            check_options(IndexSpec("x", "c", kind, {name: every[name]}))
    for name, value in given.items():
        with pytest.raises(ConfigError, match=f"{name} = .* is not of type"):
            check_options(IndexSpec("x", "c", kind, {name: 1.5 if type(value) is not bool else 1}))
    words = IndexSpec("x", "c", kind, {"custom_stop_words": ["a"]})
    with pytest.raises(FeatureNotSupported if kind is IndexKind.INVERTED else ConfigError):
        check_options(words)


def _vectors(rows: int, dimension: int = 16, kind: pa.DataType | None = None) -> Any:
    schema = pa.schema([("v", kind or pa.list_(pa.float32(), dimension))])
    return SimpleNamespace(schema=schema, count_rows=lambda: rows)


@pytest.mark.parametrize(
    ("kind", "rows", "dimension", "options"),
    [
        (IndexKind.IVF_FLAT, 2, 16, {"num_partitions": 1}),
        (IndexKind.IVF_FLAT, 511, 16, {"num_partitions": 1}),
        (IndexKind.IVF_FLAT, 512, 16, {"num_partitions": 2}),
        (IndexKind.IVF_FLAT, 256 * 40, 16, {"num_partitions": 40}),
        (IndexKind.IVF_FLAT, 1_000_000, 16, {"num_partitions": 1000}),
        (IndexKind.IVF_SQ, 2000, 16, {"num_partitions": 7}),
        (IndexKind.IVF_PQ, 2000, 32, {"num_partitions": 7, "num_sub_vectors": 2, "num_bits": 8}),
        (IndexKind.IVF_PQ, 2000, 24, {"num_partitions": 7, "num_sub_vectors": 3, "num_bits": 8}),
        (
            IndexKind.IVF_HNSW_FLAT,
            1_048_575,
            16,
            {"num_partitions": 1, "m": 20, "ef_construction": 150, "max_level": 7},
        ),
        (IndexKind.IVF_HNSW_SQ, 3_000_000, 16, {"num_partitions": 2, "m": 20, "ef_construction": 150, "max_level": 7}),
    ],
)
def test_settings_that_are_not_given(kind: IndexKind, rows: int, dimension: int, options: dict[str, int]) -> None:
    found = settled(_vectors(rows, dimension), IndexSpec("x", "v", kind, {}), "here")
    assert dict(found.options) == {"metric": "l2", "sample_rate": 256, "max_iters": 50, **options}
    given = settled(
        _vectors(rows, dimension), IndexSpec("x", "v", kind, {"metric": "cosine", "max_iters": None}), "here"
    )
    assert dict(given.options) == dict(found.options) | {"metric": "cosine"}
    assert (given.name, given.column, given.kind) == ("x", "v", kind)


def test_settings_of_other_kinds_are_left_alone() -> None:
    assert settled(None, WORDS, "here") is WORDS  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "rows", "dimension", "options", "told"),
    [
        ("ivf-flat", 100, 16, {"metric": "hamming"}, "there is no metric 'hamming'"),
        ("ivf-flat", 100, 16, {"num_partitions": 0}, "num_partitions = 0 is not within 1 and 2147483647"),
        ("ivf-flat", 100, 16, {"num_partitions": 51}, "100 rows are too few for 51 partitions"),
        ("ivf-flat", 1, 16, {}, "1 rows are too few for 1 partitions"),
        ("ivf-flat", 1000, 16, {"num_partitions": 501}, "num_partitions = 3, or wait"),
        ("ivf-flat", 100, 16, {"sample_rate": 1}, "sample_rate = 1 is not within 2 and 65536"),
        ("ivf-flat", 100, 16, {"sample_rate": 65_537}, "sample_rate = 65537 is not within"),
        ("ivf-flat", 100, 16, {"max_iters": 0}, "max_iters = 0 is not within 1 and 10000"),
        ("ivf-flat", 100, 16, {"max_iters": 10_001}, "max_iters = 10001"),
        ("ivf-flat", 10**9, 1024, {"num_partitions": 131_073}, "a model of 131073 partitions with 1024 numbers"),
        ("ivf-hnsw-flat", 100, 16, {"m": 3}, "m = 3 is not within 4 and 512"),
        ("ivf-hnsw-flat", 100, 16, {"ef_construction": 3}, "ef_construction = 3 is not within 4 and 10000"),
        ("ivf-hnsw-flat", 100, 16, {"ef_construction": 19}, "ef_construction = 19 is less than m = 20"),
        ("ivf-hnsw-flat", 100, 16, {"m": 513}, "m = 513 is not within"),
        ("ivf-hnsw-flat", 100, 16, {"max_level": 0}, "max_level = 0 is not within 1 and 32"),
        ("ivf-hnsw-flat", 100, 16, {"max_level": 33}, "max_level = 33 is not within"),
        ("ivf-hnsw-flat", 100, 16, {"ef_construction": 10_001}, "ef_construction = 10001 is not within"),
        ("ivf-pq", 1000, 12, {}, "num_sub_vectors is needed"),
        ("ivf-pq", 1000, 16, {"num_bits": 5}, "num_bits = 5 with num_sub_vectors = 1 is not possible"),
        ("ivf-pq", 1000, 16, {"num_bits": 4}, "num_bits = 4 with num_sub_vectors = 1 is not possible"),
        ("ivf-pq", 1000, 16, {"num_sub_vectors": 3}, "num_sub_vectors = 3 is no divisor of 16"),
        ("ivf-pq", 511, 16, {}, "511 rows are too few for a codebook of 8 bits.*num_bits = 4"),
        ("ivf-pq", 31, 16, {"num_bits": 4, "num_sub_vectors": 2}, "31 rows are too few for a codebook of 4 bits"),
    ],
)
def test_settings_that_do_not_fit(kind: str, rows: int, dimension: int, options: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as failure:
        settled(_vectors(rows, dimension), IndexSpec("x", "v", IndexKind(kind), options), "here")
    assert failure.value.where == "here"
    if rows == 31:
        assert "num_bits" not in str(failure.value.fix)


@pytest.mark.parametrize(
    ("kind", "rows", "dimension", "options"),
    [
        ("ivf-flat", 2, 16, {"num_partitions": 1}),
        ("ivf-flat", 100, 16, {"num_partitions": 50, "sample_rate": 2, "max_iters": 1}),
        ("ivf-flat", 100, 16, {"sample_rate": 65_536, "max_iters": 10_000, "metric": "dot"}),
        ("ivf-flat", 10**9, 1024, {"num_partitions": 131_072}),
        ("ivf-hnsw-flat", 100, 16, {"m": 4, "max_level": 1, "ef_construction": 4}),
        ("ivf-hnsw-flat", 100, 16, {"m": 512, "max_level": 32, "ef_construction": 10_000}),
        ("ivf-pq", 1000, 12, {"num_sub_vectors": 6}),
        ("ivf-pq", 512, 16, {}),
        ("ivf-pq", 32, 16, {"num_bits": 4, "num_sub_vectors": 2}),
    ],
)
def test_settings_that_just_fit(kind: str, rows: int, dimension: int, options: Any) -> None:
    found = settled(_vectors(rows, dimension), IndexSpec("x", "v", IndexKind(kind), options), "here")
    assert options.items() <= dict(found.options).items()


@pytest.mark.parametrize(
    ("kind", "error", "told"),
    [
        (pa.list_(pa.list_(pa.float32(), 2)), FeatureNotSupported, "several vectors in a row"),
        (pa.list_(pa.uint8(), 8), FeatureNotSupported, "vectors are of bytes"),
        (pa.list_(pa.int8(), 8), ConfigError, "not vectors of a fixed size"),
        (pa.list_(pa.float32()), ConfigError, "not vectors of a fixed size"),
        (pa.float32(), ConfigError, "not vectors of a fixed size"),
        (pa.list_(pa.uint8()), ConfigError, "not vectors of a fixed size"),
    ],
    ids=str,
)
def test_columns_that_hold_no_vectors(kind: pa.DataType, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        settled(_vectors(100, kind=kind), IndexSpec("x", "v", IndexKind.IVF_FLAT, {}), "here")


def test_settings_of_an_index_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    words = SimpleNamespace(index_type="Inverted", details={"stem": True, "language": None}, name="x")
    assert told_settings(None, words) == {"stem": True}  # type: ignore[arg-type]
    near = SimpleNamespace(index_type="IVF_FLAT", details={"metric_type": "L2"}, name="x")

    def model(answer: Any) -> Any:
        def get(name: str) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return SimpleNamespace(centroids=[1] * answer) if name == "x" else None

        return SimpleNamespace(get_ivf_model=get, uri="/t")

    assert told_settings(model(3), near) == {"metric": "l2", "num_partitions": 3}
    for error, kind, told in (
        (OSError("Not found: x.idx"), CorruptTable, "index 'x' can't be read"),
        (ValueError("odd"), CorruptTable, "the Lance dataset can't be read"),
        (OSError("odd"), TableError, "could not read"),
        (KeyError("odd"), KeyError, "odd"),
    ):
        with pytest.raises(kind, match=told):
            told_settings(model(error), near)
    same = as_it_is(model(3), near, IndexSpec("x", "v", IndexKind.IVF_FLAT, {"metric": "l2", "sample_rate": 9}), "here")
    assert dict(same.options) == {"metric": "l2", "num_partitions": 3}
    assert dict(as_it_is(model(3), near, replace(NEAR, options={"metric": None}), "here").options) == dict(same.options)
    for other in (
        replace(NEAR, kind=IndexKind.IVF_SQ),
        replace(NEAR, options={"metric": "dot"}),
        replace(NEAR, options={"num_partitions": 4}),
    ):
        with pytest.raises(ConfigError, match="was built with other settings"):
            as_it_is(model(3), near, other, "here")


def test_settings_that_lance_tells_of_codes_and_graphs() -> None:
    details = {
        "metric_type": "Dot",
        "compression": {"type": "pq", "num_sub_vectors": 2, "num_bits": 8},
        "hnsw": {"max_connections": 1, "construction_ef": 2, "max_level": 3},
    }
    told = described_settings(SimpleNamespace(index_type="IVF_HNSW_PQ", details=details))
    expected = {"metric": "dot", "num_sub_vectors": 2, "num_bits": 8, "m": 1, "ef_construction": 2, "max_level": 3}
    assert told == expected
    details["compression"] = {"type": "sq", "num_bits": 8}
    assert "num_bits" not in described_settings(SimpleNamespace(index_type="IVF_HNSW_SQ", details=details))
    assert index_settings.TRAINING == {"sample_rate": 256, "max_iters": 50}


# -- columns ---------------------------------------------------------------------------------------------------------

TYPES: dict[str, pa.DataType] = {
    "text": pa.string(),
    "long text": pa.large_string(),
    "bytes": pa.binary(),
    "long bytes": pa.large_binary(),
    "fixed": pa.binary(4),
    "int": pa.int16(),
    "half": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "decimal": pa.decimal128(5, 2),
    "null": pa.null(),
    "texts": pa.list_(pa.string()),
    "many texts": pa.large_list(pa.large_string()),
    "ints": pa.list_(pa.int8()),
    "lists": pa.list_(pa.list_(pa.int8())),
    "vector": pa.list_(pa.float32(), 2),
    "struct": pa.struct([("x", pa.int8())]),
    "dictionary": pa.dictionary(pa.int8(), pa.string()),
}
_ALL = set(TYPES)
_NESTED = {"texts", "many texts", "ints", "lists", "vector", "struct", "null", "dictionary"}
SUITED: dict[IndexKind, set[str]] = {
    IndexKind.INVERTED: {"text", "long text", "texts", "many texts"},
    IndexKind.NGRAM: {"text", "long text"},
    IndexKind.LABEL_LIST: {"texts", "many texts", "ints"},
    IndexKind.BTREE: _ALL - _NESTED,
    IndexKind.BITMAP: _ALL - _NESTED,
    IndexKind.ZONEMAP: _ALL - _NESTED | {"dictionary"},
    IndexKind.BLOOMFILTER: _ALL - _NESTED - {"fixed", "half", "bool", "decimal"},
}


@pytest.mark.parametrize("kind", list(SUITED))
def test_which_types_an_index_is_built_of(kind: IndexKind) -> None:
    assert {name for name, each in TYPES.items() if _FITS[kind](each)} == SUITED[kind]
    for name, each in TYPES.items():
        spec, schema = IndexSpec("x", "c", kind), pa.schema([("c", each)])
        if name in SUITED[kind]:
            check_column(schema, spec, "here")
            continue
        others = [f"`{other}`" for other in _FITS if name in SUITED[other]]
        with pytest.raises(ConfigError, match=f"builds no index of kind {kind}") as failure:
            check_column(schema, spec, "here")
        assert failure.value.fix == (
            f"Kinds for such a column are {', '.join(others)}." if others else "Index another column."
        )
    check_column(pa.schema([("c", pa.int8())]), IndexSpec("x", "c", IndexKind.IVF_PQ), "here")


def test_a_column_with_a_backtick_is_not_indexed() -> None:
    with pytest.raises(FeatureNotSupported, match="backtick"):
        check_column(pa.schema([("a`b", pa.int8())]), IndexSpec("x", "a`b", IndexKind.BTREE), "here")


def _found(name: str = "x", column: str = "id", kind: str = "BTree", **more: Any) -> Any:
    return SimpleNamespace(name=name, field_names=[column], index_type=kind, **more)


def test_what_a_mode_asks_of_the_name() -> None:
    for mode in (IndexMode.CREATE, IndexMode.REPLACE):
        check_mode(None, IDS, mode, "here")
    for mode in (IndexMode.APPEND, IndexMode.MERGE):
        with pytest.raises(ConfigError, match="there is no index 'x'"):
            check_mode(None, IDS, mode, "here")
    with pytest.raises(ConfigError, match="there is an index 'x' already"):
        check_mode(_found(), IDS, IndexMode.CREATE, "here")
    for mode in (IndexMode.REPLACE, IndexMode.APPEND, IndexMode.MERGE):
        check_mode(_found(), IDS, mode, "here")
        with pytest.raises(ConfigError, match="is of column other, not of id"):
            check_mode(_found(column="other"), IDS, mode, "here")


@pytest.mark.parametrize(
    ("others", "spec", "told"),
    [
        ([_found("y")], IDS, "already: 'y'"),
        ([_found("x")], IDS, ""),
        ([_found("y", "other")], IDS, ""),
        ([_found("y", kind="Bitmap")], IDS, ""),
        ([_found("z", kind="Bitmap"), _found("y")], IDS, "already: 'y'"),
        ([_found("y", "v", "IVF_PQ")], NEAR, "kind ivf-pq already: 'y'"),
        ([_found("y", "v", "IVF_RQ")], NEAR, ""),
        ([_found("y", "v", "BTree")], NEAR, ""),
        ([], IDS, ""),
    ],
    ids=str,
)
def test_a_column_has_one_index_for_a_question(others: Any, spec: IndexSpec, told: str) -> None:
    if not told:
        check_alone(others, spec, "here")
        return
    with pytest.raises(ConfigError, match=told):
        check_alone(others, spec, "here")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"base_tokenizer": "Simple"}, "Did you mean 'simple'? base_tokenizer is one of simple, whitespace"),
        ({"base_tokenizer": "zzzz"}, "base_tokenizer is one of"),
        ({"language": "english"}, "Did you mean 'English'? language is one of Arabic"),
        ({"base_tokenizer": "simple", "language": "Klingon"}, "language is one of"),
        ({"base_tokenizer": "simple", "language": "English"}, "Change the settings"),
        ({}, "Change the settings"),
        ({"language": 7}, "language is one of"),
    ],
)
def test_advice_on_settings_of_text(given: dict[str, Any], told: str) -> None:
    assert _advice(given).startswith(told)


def test_settings_of_text_are_tried_where_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    index_columns.check_text_settings(replace(WORDS, options={"with_position": None, "stem": None}), "here")
    index_columns.check_text_settings(WORDS, "here")
    index_columns.check_text_settings(replace(WORDS, options={"base_tokenizer": "jieba/default"}), "here")
    monkeypatch.setattr(lance, "write_dataset", lambda *_, **__: pytest.fail("nothing is to be tried"))
    index_columns.check_text_settings(replace(WORDS, options={}), "here")
    index_columns.check_text_settings(replace(IDS, options={"with_position": True}), "here")
    for error in (OSError("x"), TypeError("x"), OverflowError("x"), KeyError("x")):

        def fails(*_: Any, error: Exception = error, **__: Any) -> Any:
            raise error

        monkeypatch.setattr(lance, "write_dataset", fails)
        with pytest.raises(KeyError if isinstance(error, KeyError) else ConfigError):
            index_columns.check_text_settings(WORDS, "here")


# -- parts -----------------------------------------------------------------------------------------------------------


def test_parts_are_numbered_and_count_their_rows() -> None:
    parts = balanced({"0@a": 5, "1@b": 5, "2@c": 1}, 2)
    assert parts == (IndexPart(0, ("0@a",), 5), IndexPart(1, ("1@b", "2@c"), 6))
    assert balanced({}, 3) == ()
    assert balanced({"0@a": 0, "1@b": 0}, 2) == (IndexPart(0, ("0@a", "1@b"), 0),)
    assert balanced({"0@a": 7}, 9) == (IndexPart(0, ("0@a",), 7),)


@pytest.mark.parametrize(
    ("rows", "left", "merged"),
    [
        ([1, 1, 1], 3, []),
        ([1, 1, 1], 2, [(0, ("a", "b"), 2)]),
        ([9, 1, 1], 2, [(0, ("b", "c"), 2)]),
        ([1, 9, 1], 1, [(0, ("a", "b", "c"), 11)]),
        ([1, 1, 1], 0, [(0, ("a", "b", "c"), 3)]),
        ([1, 2, 9, 1, 1], 3, [(0, ("a", "b"), 3), (1, ("d", "e"), 2)]),
        ([5], 1, []),
        ([], 1, []),
    ],
)
def test_the_smallest_neighbours_are_merged(rows: list[int], left: int, merged: Any) -> None:
    names = list(zip("abcdefg", rows, strict=False))
    assert groups_to_merge(names, left) == tuple(IndexPart(*each) for each in merged)


def test_units_are_named_after_the_files_of_their_column(table: Any) -> None:
    table.append(0, 1, 2)
    table.append(1, 3)
    first, second = table.open().get_fragments()
    names = [file.path for fragment in (first, second) for file in fragment.metadata.files]
    assert unit_rows(table.open(), "id") == {f"0@{names[0]}": 2, f"1@{names[1]}": 1}
    table.foreign("delete")
    assert unit_rows(table.open(), "id") == {f"0@{names[0]}": 1, f"1@{names[1]}": 1}
    ((fragment, file),) = deletions(table.open()).items()
    assert (fragment, Path(table.location, file).is_file()) == (0, True)
    table.open().add_columns({"more": "id + 1"})
    assert unit_rows(table.open(), "id") == {f"0@{names[0]}": 1, f"1@{names[1]}": 1}
    more = unit_rows(table.open(), "more")
    assert set(more.values()) == {1}
    assert not any(name in unit for unit in more for name in names)
    assert [fragment_of(unit) for unit in more] == [0, 1]


def test_a_unit_of_a_struct_is_named_after_the_files_of_what_is_in_it(make_table: Callable[..., Any]) -> None:
    inner = pa.struct([("x", pa.struct([("y", pa.int8())]))])
    table = make_table(pa.schema([("s", inner), ("id", pa.int64())]), data_storage_version=DataStorageVersion.V2_1)
    table.round(0).commit(
        [table.stage(pa.record_batch([pa.array([{"x": {"y": 1}}], inner), pa.array([1])], schema=table.schema))]
    )
    (unit,) = unit_rows(table.open(), "s")
    assert unit.endswith(".lance")


def _index(*segments: tuple[str, list[int]]) -> Any:
    return SimpleNamespace(segments=[SimpleNamespace(uuid=name, fragment_ids=numbers) for name, numbers in segments])


def test_what_an_index_covers() -> None:
    index = _index(("b", [5, 6]), ("a", [1, 9]), ("gone", [7]), ("none", []))
    assert covered_by(index) == {1, 5, 6, 7, 9}
    order = {6: 10, 1: 20, 5: 30, 9: 40}  # the order of the dataset
    assert segments_in_order(index, order) == [("gone", 0), ("none", 0), ("b", 40), ("a", 60)]


# -- what a task says ------------------------------------------------------------------------------------------------


def _built(segment: str = SEGMENT, units: tuple[str, ...] = ("0@a",), rows: int = 2, **more: Any) -> BuiltIndexPart:
    left = BuiltSegment(
        fields=(0,),
        fragments=tuple(fragment_of(unit) for unit in units if unit[0].isdigit()),
        index_version=1,
        details=("k", b"\x00\xff"),
        files=(("page.lance", 3),),
        deleted=(),
    )
    shown = BuiltSettings("btree", "id", {}, details=("k", b"\0"))
    settings, payload = (
        json.loads(each.text()) | more.pop(name, {}) for name, each in (("settings", shown), ("payload", left))
    )
    return BuiltIndexPart(
        plan_id="plan",
        part=IndexPart(0, units, rows),
        segment=segment,
        snapshot_id=3,
        settings=json.dumps(settings, sort_keys=True),
        rows=rows,
        size=3,
        payload=json.dumps(payload),
        **more,
    )


def _segment(folder: Path, segment: str = SEGMENT, content: bytes = b"abc") -> Path:
    place = folder / INDICES / segment
    place.mkdir(parents=True)
    (place / "page.lance").write_bytes(content)
    return place


def test_a_result_becomes_a_segment(tmp_path: Path) -> None:
    _segment(tmp_path)
    found = unpacked(_built(), "x", str(tmp_path), {0})
    assert (found.uuid, found.name, list(found.fields), found.dataset_version) == (SEGMENT, "x", [0], 3)
    assert (set(found.fragment_ids), found.index_version, found.index_details) == ({0}, 1, ("k", b"\x00\xff"))
    assert [(file.path, file.size_bytes) for file in found.files] == [("page.lance", 3)]
    assert unpacked(_built(), "x", "s3://b/t.lance", {0}).uuid == SEGMENT


@pytest.mark.parametrize(
    "payload",
    [
        *({name: None} for name in ("files", "details", "fields", "fragments", "index_version")),
        *({"files": each} for each in ([[1]], [["a", "x"]], 5, [["a"]])),
        {"details": "xyz"},
        {"fields": ["a"]},
        {"fragments": ["x"]},
        {"index_version": "x"},
    ],
    ids=str,
)
def test_a_result_that_can_not_be_read(tmp_path: Path, payload: Any) -> None:
    _segment(tmp_path)
    with pytest.raises(SerializationError):
        unpacked(_built(payload=payload), "x", str(tmp_path), {0})
    older = '{"fields":[0],"fragments":[0],"index_version":1,"kind":"k","details":"00","files":[],"deleted":{}}'
    for text in ("", "5", "null", "[]", "{}", older):
        with pytest.raises(SerializationError, match="Run the same laketier and plugin versions") as failure:
            unpacked(replace(_built(), payload=text), "x", str(tmp_path), {0})
        assert failure.value.where == str(tmp_path)


def test_a_segment_of_other_fragments_is_refused(tmp_path: Path) -> None:
    _segment(tmp_path)
    for wanted in ({0, 1}, {1}, set()):
        with pytest.raises(TableChanged, match="is not of the fragments") as failure:
            unpacked(_built(), "x", str(tmp_path), wanted)
        assert str(sorted(wanted ^ {0})) in str(failure.value.why)


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "", ".hidden", "a/b", "a\n", "page.lance/../../x", "gone.lance"]
)
def test_a_file_that_leads_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    place = _segment(tmp_path)
    (place / ".hidden").write_bytes(b"abc")
    with pytest.raises(OutsideTable, match="is not the file that a task built"):
        unpacked(_built(payload={"files": [["page.lance", 3], [path, 3]]}), "x", str(tmp_path), {0})
    if path != "gone.lance":
        with pytest.raises(OutsideTable):
            unpacked(_built(payload={"files": [[path, 3]]}), "x", "s3://b/t.lance", {0})


@pytest.mark.parametrize("segment", ["../data", "x", SEGMENT.upper(), f"{SEGMENT}\n", f"{SEGMENT}/..", ""])
def test_a_segment_with_another_name_is_refused(tmp_path: Path, segment: str) -> None:
    for place in (str(tmp_path), "s3://b/t.lance"):
        with pytest.raises(OutsideTable):
            unpacked(_built(segment), "x", place, {0})


def test_a_file_of_another_size_is_refused(tmp_path: Path) -> None:
    place = _segment(tmp_path, content=b"abcd")
    with pytest.raises(OutsideTable, match="deleted or changed"):
        unpacked(_built(), "x", str(tmp_path), {0})
    (place / "page.lance").unlink()
    (place / "page.lance").mkdir()
    with pytest.raises(OutsideTable):
        unpacked(
            _built(payload={"files": [["page.lance", (place / "page.lance").stat().st_size]]}), "x", str(tmp_path), {0}
        )


def test_what_a_segment_tells_comes_back() -> None:
    left = BuiltSegment.read(_built(payload={"deleted": [[3, "a"], [5, "b"]]}).payload)
    assert dict(left.deleted) == {3: "a", 5: "b"}
    assert BuiltSegment.read(left.text()) == left
    for wrong in ({"deleted": None}, {"deleted": [["x", "a"]]}, {"deleted": [[3]]}):
        with pytest.raises(SerializationError):
            BuiltSegment.read(_built(payload=wrong).payload)


def test_what_lance_is_told_of_a_part() -> None:
    model = VectorModel("l2", 2, "float", b"\0" * 16)
    given = {"metric": "l2", "num_partitions": 2, "sample_rate": 2, "max_iters": 3, "m": 4, "max_level": None}
    told = _told(replace(NEAR, options=given), IndexResources(), model)
    assert set(told) == {"metric", "num_partitions", "m", "ivf_centroids"}
    assert (told["num_partitions"], told["m"], len(told["ivf_centroids"])) == (2, 4, 2)
    text = _told(
        replace(WORDS, options={"stem": None, "with_position": True}), IndexResources(partition_size=16 * MIB), None
    )
    assert text == {"with_position": True, "memory_limit": 16, "num_workers": 1}
    assert _told(IDS, IndexResources(memory=16 * MIB), None) == {}
    book = replace(model, codebook=b"\0" * 32, num_sub_vectors=2, num_bits=1)
    assert {"pq_codebook", "num_sub_vectors", "num_bits"} < set(book.arguments())
    assert (book.size, model.size, book.num_partitions) == (48, 16, 2)
    assert book.digest != model.digest == VectorModel("l2", 2, "float", b"\0" * 16).digest
    for other in ({"metric": "dot"}, {"dimension": 4}, {"values": "double"}, {"num_bits": 1}, {"num_sub_vectors": 1}):
        assert replace(model, **other).digest != model.digest


def test_a_dictionary_that_is_missing_is_told_by_its_tokenizer() -> None:
    for name, told in (
        ("lindera/ipadic", "Use base_tokenizer = icu"),
        ("jieba/default", "Put its dictionary"),
        ("icu", ""),
        (None, ""),
    ):
        found = _dictionary(replace(WORDS, options={"base_tokenizer": name}))
        assert found.startswith(told)
        assert bool(found) is bool(told)


def test_hints_of_a_segment_are_left_out() -> None:
    one, other = bytes([8, 1, 74, 1, 5, 16, 2]), bytes([16, 2, 74, 2, 6, 6, 8, 1])
    assert _without_hints(one) == _without_hints(other) != _without_hints(bytes([8, 1, 16, 3]))


def test_a_model_is_read_from_messages() -> None:
    assert _packed_varints(bytes([2, 150, 1, 0])) == [2, 150, 0]
    message = bytes([8, 2, 18, 2, 3, 4, 26, 2, 9, 9])
    assert _tensor(message, "s") == ("float", [3, 4], b"\x09\x09")
    assert _tensor(bytes([8, 3, 16, 3, 16, 4, 26, 1, 9]), "s") == ("double", [3, 4], b"\x09")
    assert _tensor(bytes([8, 1, 26, 1, 9]), "s")[0] == "halffloat"
    with pytest.raises(KeyError, match="numbers of type 7 in segment s"):
        _tensor(bytes([8, 7, 26, 1, 9]), "s")
    with pytest.raises(KeyError):
        _tensor(bytes([8, 2]), "s")


# -- limits of a task ------------------------------------------------------------------------------------------------


def test_limits_that_just_suffice() -> None:
    check_resources(WORDS, IndexResources(memory=96 * MIB))
    check_resources(WORDS, IndexResources(partition_size=16 * MIB))
    check_resources(WORDS, IndexResources(memory=112 * MIB, partition_size=16 * MIB))
    check_resources(IDS, IndexResources(memory=16 * MIB))
    check_resources(NEAR, IndexResources(workers=1, spill="/x"))
    for spec, resources, told in (
        (WORDS, IndexResources(memory=96 * MIB - 1), "memory = .* is too small, because Lance takes 64 MiB"),
        (WORDS, IndexResources(partition_size=16 * MIB - 1), "partition-size = .* is too small"),
        (WORDS, IndexResources(memory=112 * MIB - 1, partition_size=16 * MIB), f"Give memory = {112 * MIB}"),
        (IDS, IndexResources(memory=16 * MIB - 1), "memory = .* is too small"),
    ):
        with pytest.raises(ConfigError, match=told) as failure:
            check_resources(spec, resources)
        assert ("Lance takes" in str(failure.value.why or "")) is (spec is WORDS and resources.partition_size is None)
    for spec, resources, told in (
        (NEAR, IndexResources(memory=10**9), "sorts vectors by partition"),
        (replace(IDS, kind=IndexKind.ZONEMAP), IndexResources(memory=10**9), "collects nothing"),
        (replace(IDS, kind=IndexKind.NGRAM), IndexResources(memory=10**9), "writes ngrams out"),
        (IDS, IndexResources(partition_size=10**9), "only full text has partitions"),
    ):
        with pytest.raises(FeatureNotSupported, match=told):
            check_resources(spec, resources)


def test_limits_in_the_words_of_lance() -> None:
    text = IndexKind.INVERTED
    assert text_limits(text, IndexResources()) == {}
    assert text_limits(IndexKind.BTREE, IndexResources(memory=10**9, partition_size=10**9)) == {}
    assert text_limits(text, IndexResources(partition_size=17 * MIB + 5)) == {"memory_limit": 17, "num_workers": 1}
    assert text_limits(text, IndexResources(memory=10**9, partition_size=17 * MIB)) == {
        "memory_limit": 17,
        "num_workers": 1,
    }
    assert text_limits(text, IndexResources(memory=96 * MIB)) == {"memory_limit": 10}
    assert text_limits(text, IndexResources(memory=MIB)) == {"memory_limit": 1}
    assert set(variables(text, IndexResources(memory=1))) == {
        "LANCE_DEFAULT_IO_BUFFER_SIZE",
        "LANCE_DEFAULT_BATCH_SIZE",
        "LANCE_DEFAULT_FRAGMENT_READAHEAD",
    }
    assert (
        variables(text, IndexResources(partition_size=1)) == variables(IndexKind.BTREE, IndexResources(memory=1)) == {}
    )
    assert is_merged_within(IndexKind.BTREE, IndexResources(memory=1), None)
    assert is_merged_within(text, IndexResources(), None)
    assert is_merged_within(text, IndexResources(memory=64 * MIB + 30), 10)
    assert not is_merged_within(text, IndexResources(memory=64 * MIB + 29), 10)
    assert not is_merged_within(text, IndexResources(memory=10**9), None)


def test_the_pool_of_a_sort_is_set_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "LANCE_MEM_POOL_SIZE"
    monkeypatch.delenv(name, raising=False)
    for before in (None, "7"):
        if before is not None:
            monkeypatch.setenv(name, before)
        for kind in (IndexKind.BTREE, IndexKind.BITMAP, IndexKind.LABEL_LIST):
            with pooled(kind, IndexResources(memory=5)):
                assert os.environ[name] == "5"
            assert os.environ.get(name) == before
        with pytest.raises(ZeroDivisionError), pooled(IndexKind.BTREE, IndexResources(memory=5)):
            raise ZeroDivisionError
        assert os.environ.get(name) == before
        for kind, resources in ((IndexKind.INVERTED, IndexResources(memory=5)), (IndexKind.BTREE, IndexResources())):
            with pooled(kind, resources):
                assert os.environ.get(name) == before


# -- walks through graphs --------------------------------------------------------------------------------------------


def test_candidates_of_a_walk() -> None:
    assert [enough_candidates(rows) for rows in (0, 10_000, 40_000, 160_000, 10**9)] == [320, 320, 640, 1280, 1280]
    assert enough_candidates(10_100) == 321
    graph = SimpleNamespace(name="g", index_type="IVF_HNSW_PQ", segments=_index(("a", [1, 2]), ("b", [3])).segments)
    rows = {1: 20_000, 2: 20_000, 3: 30_000, 4: 10**9}
    assert kept_candidates(Nearest((1.0,)), 10, graph, rows, "", "t") == {"ef": None, "by_rows": 640}
    assert kept_candidates(Nearest((1.0,), ef=10), 10, graph, rows, "", "t") == {"ef": 10, "by_rows": 640}
    assert kept_candidates(Nearest((1.0,)), 10, replace_segments(graph), rows, "", "t")["by_rows"] == 320
    with pytest.raises(ConfigError, match="ef is 9, and 10 rows are wanted"):
        kept_candidates(Nearest((1.0,), ef=9), 10, graph, rows, "", "t")
    flat = SimpleNamespace(name="f", index_type="IVF_FLAT", segments=[])
    strange = SimpleNamespace(name="s", index_type="IVF_RQ", segments=[])
    for index, unused, told in (
        (None, "because", "because"),
        (flat, "", "index 'f' is of kind ivf-flat, which has no graph"),
        (strange, "", "index 's' is of kind IVF_RQ"),
    ):
        assert kept_candidates(Nearest((1.0,)), 10, index, rows, unused, "t") == {}
        with pytest.raises(ConfigError, match="ef = 20 has no effect") as failure:
            kept_candidates(Nearest((1.0,), ef=20), 10, index, rows, unused, "t")
        assert told in str(failure.value.why)


def replace_segments(index: Any) -> Any:
    return SimpleNamespace(**{**vars(index), "segments": []})


# -- records of parts ------------------------------------------------------------------------------------------------


def test_a_record_tells_what_a_task_built(tmp_path: Path) -> None:
    place, built = _segment(tmp_path), _built()
    write_record(str(tmp_path), "x", built)
    (found,) = records(str(tmp_path))
    assert (found.built, found.name, found.lance) == (built, "x", version("pylance"))
    assert found.digests == {"page.lance": hashlib.sha256(b"abc").hexdigest()}
    taken = taken_over(str(tmp_path), found)
    assert taken is not None
    assert taken == replace(built, segment=taken.segment)
    new = tmp_path / INDICES / taken.segment
    assert (new / "page.lance").samefile(place / "page.lance")
    assert {each.built.segment for each in records(str(tmp_path))} == {SEGMENT, taken.segment}
    forget_records(str(tmp_path), [taken.segment, "../../x", "gone"])
    assert not (new / RECORD).exists()
    assert (place / RECORD).exists()


def test_a_store_has_no_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laketier_lance.index_record.LocalFolder", lambda _: pytest.fail("it is no folder"))
    store, found = "s3://b/t.lance", _record(("0@a",))
    write_record(store, "x", found.built)
    forget_records(store, [SEGMENT])
    assert list(records(store)) == []
    assert taken_over(store, found) is None


def test_what_is_left_of_a_try_may_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = _segment(tmp_path)
    write_record(str(tmp_path), "x", _built())
    (found,) = records(str(tmp_path))
    (place / "page.lance").write_bytes(b"abx")

    def fails(_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr("laketier_lance.index_record.os.rmdir", fails)
    assert taken_over(str(tmp_path), found) is None
    monkeypatch.setattr("laketier_lance.index_record.LocalFolder.unlink", lambda *_: fails(None))
    forget_records(str(tmp_path), [SEGMENT])
    monkeypatch.setattr("laketier_lance.index_record._read", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(records(str(tmp_path)))


def _said(place: Path, **change: Any) -> None:
    """Changes what a record says: ``built__rows`` for a thing within."""
    told = json.loads((place / RECORD).read_text())
    for name, value in change.items():
        *path, last = name.split("__")
        within = told
        for each in path:
            within = within[each]
        within[last] = value
    (place / RECORD).write_text(json.dumps(told))


@pytest.mark.parametrize(
    "change",
    [
        {"form": 1},
        {"lance": "0"},
        {"name": 5},
        {"digests": {}},
        {"digests": {"page.lance": 5}},
        {"digests": {"page.lance": "x", "more": "y"}},
        {"built": None},
        *({f"built__{name}": 5} for name in ("plan_id", "segment", "settings", "payload")),
        *({f"built__{name}": "5"} for name in ("snapshot_id", "rows", "size")),
        {"built__rows": True},
        {"built__rows": 3},
        {"built__segment": SEGMENT.replace("0", "1")},
        {"built__part": None},
        *({f"built__part__{name}": "5"} for name in ("number", "rows", "bytes")),
        {"built__part__units": [5]},
        {"built__payload": _built(payload={"files": [["../x", 3]]}).payload, "digests": {"../x": "x"}},
        {"built__payload": _built(payload={"files": [[RECORD, 3]]}).payload, "digests": {RECORD: "x"}},
        {"built__payload": _built(payload={"files": [["page.lance", "3"]]}).payload},
    ],
    ids=str,
)
def test_a_record_of_something_else_is_left_out(tmp_path: Path, change: dict[str, Any]) -> None:
    place = _segment(tmp_path)
    write_record(str(tmp_path), "x", _built())
    assert len(list(records(str(tmp_path)))) == 1
    _said(place, **change)
    assert list(records(str(tmp_path))) == []


def test_records_elsewhere_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = _segment(tmp_path)
    write_record(str(tmp_path), "x", _built())
    text = (place / RECORD).read_bytes()
    for other in (f"{SEGMENT}/staging/{RECORD}", f"other/{RECORD}", RECORD, f"{SEGMENT}/other.json"):
        (tmp_path / INDICES / other).parent.mkdir(exist_ok=True)
        (tmp_path / INDICES / other).write_bytes(text)
    assert len(list(records(str(tmp_path)))) == 1
    monkeypatch.setattr("laketier_lance.index_record._MOST", len(text))
    assert len(list(records(str(tmp_path)))) == 1
    monkeypatch.setattr("laketier_lance.index_record._MOST", len(text) - 1)
    assert list(records(str(tmp_path))) == []


def test_a_link_that_took_the_place_of_a_segment_is_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, elsewhere = tmp_path / "table", tmp_path / "elsewhere"
    place = _segment(table)
    write_record(str(table), "x", _built())
    listed = list(LocalFolder(table).files(INDICES))
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    assert list(records(str(table))) == []
    monkeypatch.setattr(LocalFolder, "files", lambda *_: listed)  # the link came after the listing
    assert list(records(str(table))) == []


@pytest.mark.parametrize("harm", ["gone", "longer", "other", "no digest", "link"])
def test_a_part_whose_files_changed_is_not_taken_over(tmp_path: Path, harm: str) -> None:
    place = _segment(tmp_path)
    write_record(str(tmp_path), "x", _built())
    (found,) = records(str(tmp_path))
    file = place / "page.lance"
    if harm == "gone":
        file.unlink()
    elif harm == "link":
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")
    elif harm == "no digest":
        found = replace(found, digests={})
    else:
        file.write_bytes(b"abcd" if harm == "longer" else b"abx")
    assert taken_over(str(tmp_path), found) is None
    assert [path.name for path in (tmp_path / INDICES).iterdir()] == [SEGMENT], "nothing is left of the try"


def test_files_of_a_segment_have_plain_names() -> None:
    assert list(_files(_built())) == [("page.lance", 3)]
    for name in ("../x", "", "a/b", ".x", RECORD):
        with pytest.raises(SerializationError, match="is no file of a segment"):
            _files(_built(payload={"files": [[name, 1]]}))


# -- going on --------------------------------------------------------------------------------------------------------


def _plan(spec: IndexSpec = IDS, mode: IndexMode = IndexMode.CREATE, *parts: tuple[str, ...]) -> IndexPlan:
    builder = LanceIndexBuilder("plan", "/t", LanceOptions(), spec, 3)
    made = tuple(
        IndexPart(number, units, len(units)) for number, units in enumerate(parts or (("0@a", "1@b"), ("2@c",)))
    )
    return IndexPlan("plan", spec, mode, 3, made, builder)


def _record(
    units: tuple[str, ...], segment: str = SEGMENT, name: str = "x", deleted: Any = None, **settings: Any
) -> Any:
    payload = {"deleted": list((deleted or {}).items())}
    built = _built(segment, units, rows=len(units), settings=settings, payload=payload)
    return SimpleNamespace(built=built, name=name)


def _fitting(plan: IndexPlan, *found: Any, deleted: Any = None, digest: str | None = None, most: int = 9) -> list[str]:
    return [each.built.segment for each in parts_that_fit(plan, found, deleted or {}, digest, most)]


def test_parts_that_a_build_would_make_again() -> None:
    plan = _plan()
    assert _fitting(plan, _record(("0@a",), "s1"), _record(("1@b", "2@c"), "s2")) == ["s2", "s1"], "across parts"
    for other in (
        _record(("0@a",), name="y"),
        _record(()),
        _record(("0@a", "3@d")),
        _record(("0@other",)),
        _record(("0@a",), kind="bitmap"),
        _record(("0@a",), column="other"),
        _record(("0@a",), options={"a": 1}),
        _record(("0@a",), more=1),
        _record(("0@a",), deleted={0: "gone.arrow"}),
    ):
        assert _fitting(plan, other) == []
    assert _fitting(plan) == []
    odd = _record(("0@a",))
    for text in ("", "5", "null", "{}", "[]"):
        odd.built = replace(odd.built, settings=text)
        assert _fitting(plan, odd) == []


def test_parts_with_the_same_deleted_rows() -> None:
    plan = _plan()
    gone = {0: "a.arrow", 2: "c.arrow"}
    assert _fitting(plan, _record(("0@a",), deleted={0: "a.arrow"}), deleted=gone) == [SEGMENT]
    for had in ({}, {0: "b.arrow"}, {0: "a.arrow", 2: "c.arrow"}):
        assert _fitting(plan, _record(("0@a",), deleted=had), deleted=gone) == []
    merging = _plan(IDS, IndexMode.MERGE, ("s1", "s2"))
    assert _fitting(merging, _record(("s1", "s2")), deleted=gone) == [SEGMENT], "a merge counts them, too"
    assert _fitting(merging, _record(("s1",))) == [], "a merge has to be of the same segments"


def test_parts_of_one_model() -> None:
    spec = replace(NEAR, options={})
    plan = _plan(spec, IndexMode.CREATE, ("0@a",), ("1@b",), ("2@c",))
    same = {"kind": "ivf-flat", "column": "v"}
    found = [
        _record(("0@a",), "s1", model="m", **same),
        _record(("1@b",), "s2", model="n", **same),
        _record(("2@c",), "s3", model="n", **same),
    ]
    assert _fitting(plan, *found) == ["s2", "s3"], "those that cover the most"
    assert _fitting(plan, *found, digest="m") == ["s1"]
    assert _fitting(plan, *found, digest="other") == []


def test_an_index_of_one_part_is_taken_over_whole() -> None:
    whole = _plan(replace(NEAR, kind=IndexKind.IVF_SQ, options={}), IndexMode.CREATE, ("0@a", "1@b"))
    same = {"kind": "ivf-sq", "column": "v", "model": "m"}
    assert _fitting(whole, _record(("0@a",), **same)) == []
    assert _fitting(whole, _record(("0@a", "1@b"), **same)) == [SEGMENT]


def test_no_more_parts_than_are_wanted() -> None:
    plan = _plan(IDS, IndexMode.CREATE, *((f"{number}@f",) for number in range(4)))
    found = [_record((f"{number}@f",), f"s{number}") for number in range(4)]
    assert _fitting(plan, *found, most=4) == ["s0", "s1", "s2", "s3"]
    assert _fitting(plan, *found, most=3) == ["s0", "s1"]
    assert _fitting(plan, *found, most=1) == []
    assert _fitting(plan, *found[:3], most=3) == ["s0", "s1"], "what is left needs room"
    assert _fitting(plan, *found[:3], most=4) == ["s0", "s1", "s2"]
    wide = _record(("0@f", "1@f"), "wide")
    assert _fitting(plan, *found, wide, most=9) == ["wide", "s2", "s3"], "none twice, and large ones first"
    assert _fitting(plan, wide, _record(("2@f", "3@f"), "more"), most=2) == ["more", "wide"]


def test_a_plan_without_what_is_kept() -> None:
    plan = _plan(IDS, IndexMode.CREATE, ("0@a", "1@b"), ("2@c", "3@d"))
    rows = {"0@a": 1, "1@b": 2, "2@c": 3, "3@d": 4}
    first = _built("s1", ("0@a", "1@b"))
    left = without(plan, [first], rows, 2)
    assert (left.parts, left.kept) == ((plan.parts[1],), (first,)), "the others stay as they are"
    across = _built("s2", ("1@b", "2@c"))
    left = without(plan, [across], rows, 3)
    assert [(part.units, part.rows) for part in left.parts] == [(("0@a",), 1), (("3@d",), 4)]
    assert [part.units for part in without(plan, [across], rows, 2).parts] == [("0@a", "3@d")]
    assert [part.units for part in without(plan, [across], rows, 1).parts] == [("0@a", "3@d")]
    assert without(plan, [first, _built("s3", ("2@c", "3@d"))], rows, 2).parts == ()
    merging = _plan(IDS, IndexMode.MERGE, ("a", "b"), ("c", "d"))
    assert without(merging, [_built("s", ("0", "1"))], {}, 2).parts == merging.parts


# -- folders ---------------------------------------------------------------------------------------------------------


def test_folders_that_became_empty(tmp_path: Path) -> None:
    assert empty_folders(str(tmp_path), 10**15) == empty_folders("s3://b/t.lance", 10**15) == {}
    names = [SEGMENT.replace("0a1b", f"000{number}") for number in range(5)]
    plain, staged, full, deep, linked = (tmp_path / INDICES / name for name in names)
    for folder in (plain, staged / "staging", full, deep / "staging"):
        folder.mkdir(parents=True)
    (full / "file").touch()
    (deep / "staging" / "file").touch()
    linked.symlink_to(plain)
    inside = tmp_path / INDICES / SEGMENT.replace("0a1b", "0009")
    (inside / "other").mkdir(parents=True)
    (tmp_path / INDICES / "other").mkdir()
    for folder, second in ((plain, 5), (staged / "staging", 9), (staged, 7)):
        os.utime(folder, (second, second))
    found = empty_folders(str(tmp_path), 10**15)
    assert [(path, file.path, file.bytes, file.modified_at, file.kind) for path, file in found.items()] == [
        (f"{INDICES}/{plain.name}", f"{INDICES}/{plain.name}", 0, 5000, "index-folder"),
        (f"{INDICES}/{staged.name}", f"{INDICES}/{staged.name}", 0, 9000, "index-folder"),
    ]
    assert list(empty_folders(str(tmp_path), 9000)) == [f"{INDICES}/{plain.name}"]
    assert list(empty_folders(str(tmp_path), 5000)) == []
    (staged / "staging").rmdir()
    (staged / "staging").symlink_to(full)
    assert f"{INDICES}/{staged.name}" not in empty_folders(str(tmp_path), 10**15)
