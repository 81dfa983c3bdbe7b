"""Small parts of the plugin, each asked what few tables ask it: what other tools wrote, and what Lance says."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest

from laketier.spi import (
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    IncompatibleTable,
    IndexKind,
    IndexSpec,
    Leaf,
    Match,
    MultiMatch,
    Op,
    OrphanFile,
    Phrase,
    RolledBack,
    StorageError,
    TableError,
    UnsupportedType,
)
from laketier_lance.dataset import unreadable
from laketier_lance.filters import to_sql
from laketier_lance.graph_walk import as_lance_takes_it
from laketier_lance.index_columns import check_column
from laketier_lance.index_folders import INDICES, remove_folders
from laketier_lance.index_settings import described_settings
from laketier_lance.ranked import Ranked
from laketier_lance.table import DESCRIPTOR, LAST, LOST_PREFIX
from laketier_lance.types import check_types
from laketier_lance.wire import field, fields
from laketier_lance.words import is_dropped, texts_of

SEGMENT = "0" * 8 + "-0000" * 3 + "-" + "0" * 12
PLAIN = {"v": 1, "comment": None, "properties": {}}


# -- what other tools wrote ------------------------------------------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "document",
    [
        *(b"", b"{", b"[]", b"5", b"null", b'"text"', b"{}", b"[" * 100_000),
        *(json.dumps(PLAIN | {"properties": each}).encode() for each in (5, None, [], ["a"], {"owner": 7})),
        *(json.dumps(PLAIN | {"primary_key": each}).encode() for each in (5, None, "id", [["id"]], [7], {"id": 1})),
        *(json.dumps(PLAIN | {"comment": each}).encode() for each in (5, [], {})),
        json.dumps({"v": 1, "properties": {}}).encode(),
    ],
)
def test_a_description_of_another_tool_is_damage(table: Any, document: bytes) -> None:
    table.open().update_schema_metadata({DESCRIPTOR.decode(): document.decode()})
    with pytest.raises(CorruptTable, match=r"the metadata 'laketier\.descriptor' can't be read"):
        table.reload()


@pytest.mark.every(2)
@pytest.mark.parametrize("key", [LAST.decode(), f"{LOST_PREFIX.decode()}p"])
@pytest.mark.parametrize("value", ["", "x", "1.5", "9" * 5000])
def test_a_number_of_another_tool_is_damage(table: Any, key: str, value: str) -> None:
    table.append(0, 1)
    table.open().update_schema_metadata({key: value})
    with pytest.raises(CorruptTable, match=f"the metadata {key!r} can't be read"):
        table.append(1, 2)
    assert table.ids() == [1]


def test_a_restore_is_noticed_in_a_table_whose_metadata_came_from_a_longer_one(table: Any) -> None:
    """As one that another tool copied with its metadata has it: the copy begins at its first version again."""
    table.append(0, 1)
    table.open().update_schema_metadata({LAST.decode(): "1000"})
    kept = int(table.open().version)
    table.append(1, 2)
    table.append(2, 3)
    assert table.open().schema.metadata[LAST] == str(kept + 2).encode(), "and it has numbers of its own again"
    lance.dataset(table.location, version=kept).restore()
    with pytest.raises(RolledBack, match=f"version {kept + 2} published a later epoch"):
        table.append(1, 2)


# -- what Lance says -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("location", "path", "told"),
    [
        ("/lake/t.lance", "lake/t.lance/data/1.lance", "/lake/t.lance/data/1.lance"),
        ("/lake/t.lance", "/lake/t.lance/data/1.lance", "/lake/t.lance/data/1.lance"),
        ("s3://b/t.lance", "t.lance/data/1.lance", "t.lance/data/1.lance"),
        ("s3://b/t.lance", "/t.lance/data/1.lance", "/t.lance/data/1.lance"),
    ],
)
def test_a_file_that_is_missing_is_named_as_people_find_it(location: str, path: str, told: str) -> None:
    error = unreadable(location, OSError(f"LanceError(IO): Not found: {path}, /rustc/a.rs:1:2"))
    assert isinstance(error, CorruptTable)
    assert (error.what, error.where) == ("a data file of the snapshot is missing", told)
    of_index = unreadable(location, OSError(f"Not found: {path.replace('data/1.lance', '_indices/u/i.idx')}"))
    assert isinstance(of_index, CorruptTable)
    assert of_index.what == "an index file of the snapshot is missing"
    assert "laketier index" in (of_index.fix or "") > (error.fix or "")


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (ValueError("No object store provider found for x\nmore"), ConfigError, "does not know this kind of store"),
        (OSError("the dataset cannot be read by this version of Lance"), IncompatibleTable, "a newer version"),
        (ValueError("a bad manifest"), CorruptTable, "can't be read"),
        (OSError("a bad manifest"), TableError, "could not read the dataset"),
        (ValueError("Generic S3 error: a bad answer"), StorageError, "could not read the dataset"),
        (ValueError("HTTP 503"), StorageError, "could not read the dataset"),
        (ValueError("Permission denied"), StorageError, "could not read the dataset"),
        (ValueError("timed out"), StorageError, "could not read the dataset"),
        (ValueError("LanceError(IO): Too many open files (os error 24)"), StorageError, "could not read the dataset"),
        (ValueError("LanceError(IO): Stale file handle (os error 116)"), StorageError, "could not read the dataset"),
    ],
)
def test_what_could_not_be_read_is_damage_only_where_the_store_is_well(
    error: Exception, kind: type[Exception], told: str
) -> None:
    found = unreadable("/lake/t.lance", error)
    assert type(found) is kind
    assert told in found.what


MESSAGE = bytes([8, 150, 1, 18, 3, 97, 98, 99, 29, 1, 2, 3, 4, 33, 1, 2, 3, 4, 5, 6, 7, 8])
FOUND = [(1, 150), (2, b"abc"), (3, bytes([1, 2, 3, 4])), (4, bytes(range(1, 9)))]


def test_a_message_is_read_in_its_order() -> None:
    assert fields(MESSAGE) == FOUND
    assert field(MESSAGE, 2) == b"abc"
    for number in (1, 9):
        with pytest.raises(ValueError, match=f"has no field {number}"):
            field(MESSAGE, number)


@pytest.mark.parametrize("size", range(1, len(MESSAGE)))
def test_a_message_that_is_cut_is_none_unless_it_ends_with_a_field(size: int) -> None:
    if size in (3, 8, 13):
        assert fields(MESSAGE[:size]) == FOUND[: {3: 1, 8: 2, 13: 3}[size]]
        return
    with pytest.raises(ValueError, match=r"after the message"):
        fields(MESSAGE[:size])


@pytest.mark.parametrize(
    "message",
    [b"\x80" * 11, b"\x80" * 10 + b"\x01", b"\x0b", b"\x0c", b"\x0e\x00", b"\x0f", b"\x12\xff\xff\xff\xff\x7f"],
)
def test_what_is_no_message(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"after the message|of the unknown form"):
        fields(message)
    assert fields(b"\x08" + b"\xff" * 9 + b"\x01") == [(1, 2**64 - 1)], "the largest number that there is"


# -- questions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "fits", "others"),
    [
        (
            pa.timestamp("us"),
            datetime(2026, 1, 2),
            [datetime(2026, 1, 2, tzinfo=UTC), date(2026, 1, 2), "2026-01-02", 5],
        ),
        (
            pa.timestamp("us", "UTC"),
            datetime(2026, 1, 2, tzinfo=UTC),
            [datetime(2026, 1, 2), date(2026, 1, 2), "2026-01-02", 5],
        ),
        (pa.timestamp("s"), datetime(2026, 1, 2), [datetime(2026, 1, 2, 0, 0, 0, 1000)]),
        (pa.timestamp("ms"), datetime(2026, 1, 2, 0, 0, 0, 1000), [datetime(2026, 1, 2, 0, 0, 0, 1)]),
        (pa.timestamp("ns"), datetime(1680, 1, 1), [datetime(1679, 12, 31), datetime(2261, 1, 1)]),
        (pa.date32(), date(2026, 1, 2), [datetime(2026, 1, 2), "2026-01-02", 5]),
        (pa.decimal128(5, 2), Decimal("1.25"), [1, 1.25, "1.25", Decimal("NaN"), Decimal("1.255"), Decimal("1e9")]),
        (pa.decimal256(50, 2), None, [Decimal("1.25"), 1]),
        (pa.int8(), -128, [128, -129, True, 1.0, "1", Decimal(1)]),
        (pa.uint8(), 255, [256, -1, True]),
        (pa.int64(), 2**63 - 1, [-(2**63), 2**63]),
        (pa.uint64(), 2**63 - 1, [2**63, -1]),
        (pa.bool_(), True, [1, 0, "true"]),
        (pa.string(), "it's", [5, b"a", "a\0b"]),
        (pa.large_string(), "", [5]),
        (pa.float64(), None, [1.0, 1]),
        (pa.binary(), None, [b"a"]),
    ],
    ids=str,
)
def test_a_literal_is_pushed_only_where_it_is_of_its_columns_type(
    kind: pa.DataType, fits: Any, others: list[Any]
) -> None:
    schema = pa.schema([("c", kind)])
    if fits is not None:
        assert to_sql(Leaf("c", Op.EQ, fits), schema) is not None
        assert to_sql(Leaf("c", Op.IN, (fits, None)), schema) is not None
    for other in others:
        assert to_sql(Leaf("c", Op.EQ, other), schema) is None
        assert to_sql(Leaf("c", Op.IN, (other, *(() if fits is None else (fits,)))), schema) is None


def test_names_that_lance_would_read_otherwise_are_left_to_the_reader() -> None:
    schema = pa.schema([("a`b", pa.int64()), ("c", pa.int64())])
    for name in ("a`b", "d"):
        assert to_sql(Leaf(name, Op.IS_NULL), schema) is None
    assert to_sql(Leaf("c", Op.STARTS_WITH, 1), schema) is None


def _index(**details: Any) -> Any:
    return SimpleNamespace(details=details)


def test_words_that_nothing_is_known_of_are_not_called_dropped() -> None:
    """Its dictionary is not here, or another version wrote its settings."""
    assert is_dropped("the", _index(language="English", remove_stop_words=True))
    assert is_dropped("a" * 41, _index(max_token_length=40))
    assert not is_dropped("a" * 41, _index(max_token_length=None))
    assert not is_dropped("snow", _index())
    for settings in ({"base_tokenizer": "lindera/none"}, {"language": 7}, {"base_tokenizer": "of the future"}):
        assert not is_dropped("the", _index(**settings))
    assert not is_dropped("snow", SimpleNamespace(details=None))


def test_each_column_is_asked_for_its_text() -> None:
    assert list(texts_of(Match("a", "t"), "only")) == [("t", "a")]
    assert list(texts_of(Phrase("a b"), "only")) == [("only", "a b")]
    assert list(texts_of(MultiMatch("a", ("t", "u")), None)) == [("t", "a"), ("u", "a")]


@pytest.mark.parametrize(
    ("asked", "limit", "told"),
    [
        ({}, 10, {"k": 10}),
        ({"ef": None}, 10, {"k": 10, "ef": 320}),
        ({"ef": None, "by_rows": 640}, 10, {"k": 10, "ef": 640}),
        ({"ef": None, "refine_factor": 40}, 10, {"k": 10, "ef": 600, "refine_factor": 40}),
        ({"ef": 50, "by_rows": 640}, 10, {"k": 10, "ef": 50}),
        ({"ef": 50}, 80, {"k": 80, "ef": 80}),
        ({"ef": 50, "refine_factor": 9}, 10, {"k": 10, "ef": 90, "refine_factor": 9}),
        ({"by_rows": 640}, 10, {"k": 10}),
    ],
)
def test_a_walk_keeps_as_many_candidates_as_are_wanted(asked: dict[str, Any], limit: int, told: dict[str, Any]) -> None:
    before = dict(asked)
    assert as_lance_takes_it(asked, limit) == told
    assert asked == before


@pytest.mark.every(3)
@pytest.mark.parametrize("count", [1, 2, 9, 10, 11, 30])
@pytest.mark.parametrize("k", [1, 2, 10, 40])
def test_rows_that_tie_are_the_first_of_the_table(tmp_path: Path, count: int, k: int) -> None:
    """Vectors that are equally near, some that are nearer, and some without a distance."""
    near = [[0.0, 0.0] if each % 7 == 3 else [1.0, 0.0] for each in range(count)]
    vectors = pa.array([*near, [float("nan"), 0.0], None], pa.list_(pa.float32(), 2))
    dataset = lance.write_dataset(pa.table({"v": vectors}), tmp_path / "t.lance")
    ask = {"nearest": {"column": "v", "q": pa.array([0.0, 0.0], pa.float32()), "use_index": False}}
    best = Ranked(dataset, "t").best(ask, "_distance", k, None, limited=True, descending=False)
    expected = sorted((0.0 if each % 7 == 3 else 1.0, each) for each in range(count))
    assert [(measure, row) for row, measure in best] == expected[:k]


# -- columns and types -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "error", "told"),
    [
        ("s.x", FeatureNotSupported, "it is within a column"),
        ("zz.x", ConfigError, "no column 'zz.x'"),
        ("zz", ConfigError, "It has s, text, tent"),
        ("S", ConfigError, "Did you mean 's'"),
        ("textt", ConfigError, "Did you mean 'text'"),
    ],
)
def test_a_column_that_is_not_there_is_told_with_the_nearest(column: str, error: type[Exception], told: str) -> None:
    schema = pa.schema([("s", pa.struct([("x", pa.string())])), ("text", pa.string()), ("tent", pa.string())])
    with pytest.raises(error, match=told):
        check_column(schema, IndexSpec("i", column, IndexKind.BTREE), "here")


def test_a_vector_of_one_number_is_one() -> None:
    check_types(pa.schema([("v", pa.list_(pa.float32(), 1))]), "2.1")
    for kind in (pa.list_(pa.float32(), 0), pa.list_(pa.list_(pa.float32(), 0), 2), pa.list_(pa.string(), 1)):
        with pytest.raises(UnsupportedType):
            check_types(pa.schema([("v", kind)]), "2.1")


@pytest.mark.parametrize(
    ("details", "told"),
    [
        ({"metric_type": "L2"}, {"metric": "l2"}),
        ({"metric_type": None}, {}),
        ({"metric_type": "Cosine", "compression": {"type": "pq", "num_bits": 4, "num_sub_vectors": 2}}, None),
        ({"compression": {"type": "sq", "num_bits": 8}}, {}),
        (
            {"hnsw": {"max_connections": 20, "construction_ef": 150, "max_level": 7}},
            {"m": 20, "ef_construction": 150, "max_level": 7},
        ),
    ],
)
def test_settings_of_vectors_are_told_without_a_look_at_files(details: Any, told: Any) -> None:
    found = SimpleNamespace(index_type="IVF_PQ", details=details)
    assert described_settings(found) == (
        told if told is not None else {"metric": "cosine", "num_bits": 4, "num_sub_vectors": 2}
    )
    assert described_settings(SimpleNamespace(index_type="BTREE", details=None)) == {}


# -- folders of indexes ----------------------------------------------------------------------------------------------


def test_only_an_empty_folder_of_a_segment_is_removed(tmp_path: Path) -> None:
    """Names come from results, and those from outside."""
    for name in ("theirs", f"{INDICES}/{SEGMENT}/staging", f"{INDICES}/other", f"{INDICES}/{SEGMENT[:-1]}1/staging"):
        (tmp_path / name).mkdir(parents=True)
    full = f"{SEGMENT[:-1]}1"
    (tmp_path / INDICES / full / "staging" / "page").write_text("theirs")
    names = [SEGMENT, full, "other", "../theirs", "..", ".", "", "/", str(tmp_path / "theirs"), f"{SEGMENT}/staging"]
    assert remove_folders(str(tmp_path), names) == {SEGMENT}
    assert sorted(path.name for path in (tmp_path / INDICES).iterdir()) == sorted([full, "other"])
    assert (tmp_path / "theirs").is_dir()
    assert remove_folders(str(tmp_path), [SEGMENT]) == {SEGMENT}, "it is gone"
    (tmp_path / INDICES).rename(tmp_path / "moved")
    (tmp_path / INDICES).symlink_to(tmp_path / "moved")
    assert remove_folders(str(tmp_path), [SEGMENT]) == set()
    assert remove_folders("s3://bucket/t.lance", [SEGMENT]) == set()


def test_a_folder_stays_where_a_file_of_it_could_not_be_deleted(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(table.location) / INDICES / SEGMENT
    folder.mkdir(parents=True)
    maintenance = table.storage.maintenance(table.info)
    orphan = OrphanFile(f"{INDICES}/{SEGMENT}/page.idx", 1, 0, "index", None)
    monkeypatch.setattr("laketier_lance.maintenance.delete_files", lambda *_: set())
    assert maintenance.remove_orphans([orphan]) == []
    assert folder.is_dir(), "who knows what lies there"
    monkeypatch.undo()
    assert maintenance.remove_orphans([orphan]) == [orphan]
    assert not folder.exists()
    assert os.path.isdir(folder.parent)
