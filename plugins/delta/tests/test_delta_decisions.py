"""What the plugin decides by names, texts and log entries alone, one by one."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from laketier.kit.partition import OddPartitionValues
from laketier.spi import (
    BucketSpec,
    CorruptTable,
    IncompatibleData,
    IncompatibleTable,
    OutsideTable,
    StagedFile,
    WriteResult,
)
from laketier_delta.altering import _has_required, lacks_invariants
from laketier_delta.changes import has_feed
from laketier_delta.char_limits import check_lengths, is_padded, is_plain
from laketier_delta.delta_log import timestamp_of
from laketier_delta.history import _snapshot_info, commit_rows
from laketier_delta.layout import (
    attempt_of,
    bucket_of,
    buckets_from,
    buckets_to_property,
    core_of,
    cores_in,
    file_path,
    fingerprint_of,
    partition_values,
    primary_key_from,
    relative_path,
    spec_id_of,
    stem_of,
)
from laketier_delta.partitions import empty_as_null, partition_scalar, text_of_log
from laketier_delta.protocol import _columns, check_properties, integer_property
from laketier_delta.references import LogFiles, _names
from laketier_delta.results import check_partitions
from laketier_delta.source import _moment, _shaped, _whole
from laketier_delta.spellings import _is_silent, _values, zoned_partitions

FINGERPRINT, ATTEMPT = "0123456789abcdef", "f" * 32
STEM = stem_of(FINGERPRINT, ATTEMPT, 7)
LONG = "x" * 201


def test_a_name_tells_its_schema_its_attempt_and_its_bucket() -> None:
    path = file_path(["a b", "c"], ["x/y", None], STEM, 3)
    assert path == f"a%20b=x%2Fy/c=__HIVE_DEFAULT_PARTITION__/laketier-{FINGERPRINT}-{ATTEMPT}-00007-b3.parquet"
    assert (bucket_of(path), fingerprint_of(path)) == (3, FINGERPRINT)
    plain = file_path([], [], STEM, None)
    assert (plain, bucket_of(plain), fingerprint_of(plain)) == (f"{STEM}.parquet", -1, FINGERPRINT)
    assert (core_of(plain), cores_in(plain.encode() * 2)) == (STEM, {STEM})
    for other in ("part-00000.snappy.parquet", f"{STEM}.orc", f"x/{STEM[:20]}.parquet", "/x"):
        assert (bucket_of(other), fingerprint_of(other), core_of(other)) == (-1, None, None)


@pytest.mark.parametrize(
    ("path", "columns", "is_ours"),
    [
        (f"{STEM}.parquet", [], True),
        (f"a=1/{STEM}.parquet", ["a"], True),
        (f"a%20b=1/c=/{STEM}.parquet", ["a b", "c"], True),
        (f"a=1/{STEM}.parquet", [], False),
        (f"{STEM}.parquet", ["a"], False),
        (f"b=1/{STEM}.parquet", ["a"], False),
        (f"ab=1/{STEM}.parquet", ["a"], False),
        (f"c=1/a=1/{STEM}.parquet", ["a", "c"], False),
        (f"a=1/x/{STEM}.parquet", ["a"], False),
        ("a=1/part-0.parquet", ["a"], False),
    ],
)
def test_an_attempt_is_known_where_laketier_puts_files(path: str, columns: list[str], is_ours: bool) -> None:
    assert attempt_of(path, columns) == (ATTEMPT if is_ours else None)


@pytest.mark.parametrize(
    ("value", "refused", "why"),
    [
        ("", "has empty strings", "reads an empty partition value as null"),
        (LONG, "can't name a folder", "too long"),
        ("é" * 34, "can't name a folder", "too long"),
        ("__HIVE_DEFAULT_PARTITION__", "can't name a folder", "stands for null"),
    ],
)
def test_a_value_that_names_no_folder_is_refused(value: str, refused: str, why: str) -> None:
    with pytest.raises(IncompatibleData, match=refused) as told:
        file_path(["p"], [value], STEM, None)
    assert why in (told.value.why or "")
    can_be_accepted = value != "__HIVE_DEFAULT_PARTITION__"
    assert ("odd-partition-values" in (told.value.fix or "")) is can_be_accepted
    if len(value) > 1 and can_be_accepted:
        folder = file_path(["p"], [value], STEM, None, OddPartitionValues.ACCEPT).partition("/")[0]
        assert folder.startswith("p=")
        assert len(folder) < 100
    else:
        with pytest.raises(IncompatibleData):
            file_path(["p"], [value], STEM, None, OddPartitionValues.ACCEPT)


def test_the_longest_value_that_names_a_folder() -> None:
    assert file_path(["p"], ["x" * 200], STEM, None).startswith(f"p={'x' * 200}/")
    assert file_path(["p" * 50], ["x" * 200], STEM, None).startswith("p" * 50 + "=x")
    with pytest.raises(IncompatibleData, match="can't name a folder"):
        file_path(["p" * 60], ["x" * 200], STEM, None)


def test_a_column_whose_name_leaves_no_room_for_a_digest() -> None:
    with pytest.raises(IncompatibleData, match="can't name a folder") as told:
        file_path(["p" * 240], ["x" * 20], STEM, None, OddPartitionValues.ACCEPT)
    assert "odd-partition-values" not in (told.value.fix or "")


@pytest.mark.parametrize("path", ["s3://b/x", "file:/x", "hdfs+x:/y", "/x", "%2Fx"])
def test_a_file_that_a_clone_has_elsewhere_is_told(path: str) -> None:
    with pytest.raises(IncompatibleTable, match="outside its folder"):
        relative_path(path)
    assert relative_path("a%20b/c=1:2.parquet") == "a b/c=1:2.parquet"


def test_specs_are_told_by_their_columns_and_order() -> None:
    found = [spec_id_of(columns) for columns in ([], ["a"], ["b"], ["a", "b"], ["b", "a"], ["a,b"])]
    assert found[0] == 0
    assert len(set(found)) == len(found)
    assert partition_values(["a", "b"], [1, None]) == (("a", "1"), ("b", None))


BUCKETS = BucketSpec(4, ("a", "b"), "fluss")


def test_properties_of_laketier_come_back() -> None:
    assert buckets_from({"laketier.buckets": buckets_to_property(BUCKETS)}) == BUCKETS
    assert (buckets_from({}), primary_key_from({})) == (None, ())
    assert primary_key_from({"laketier.primary-key": '["b", "a"]'}) == ("b", "a")


@pytest.mark.parametrize("text", ["{", "[]", "7", "{}", '{"count": "x", "keys": [], "function": "f"}', "[" * 100_000])
def test_a_damaged_spec_of_buckets_is_told(text: str) -> None:
    with pytest.raises(CorruptTable, match=r"laketier\.buckets can't be read"):
        buckets_from({"laketier.buckets": text})


@pytest.mark.parametrize("text", ["{", "[]", "7", "{}", '"id"', "null", "[" * 100_000])
def test_a_damaged_primary_key_is_told(text: str) -> None:
    with pytest.raises(CorruptTable, match=r"laketier\.primary-key can't be read"):
        primary_key_from({"laketier.primary-key": text})


def entry(number: int) -> str:
    return f"{number:020}.json"


def checkpoint(number: int, part: int = 0, parts: int = 0) -> str:
    return f"{number:020}.checkpoint{f'.{part:010}.{parts:010}' if parts else ''}.parquet"


PARTS = [checkpoint(1, 1, 2), checkpoint(1, 2, 2)]


def log_of(folder: Path, *names: str) -> LogFiles:
    for name in names:
        (folder / name).touch()
    return LogFiles.of(pafs.LocalFileSystem(), str(folder))


def told(paths: list[str]) -> list[str]:
    return [Path(path).name for path in paths]


@pytest.mark.parametrize(
    ("names", "newest", "needed"),
    [
        ([entry(0)], [entry(0)], []),
        ([entry(0), entry(1)], [entry(0), entry(1)], []),
        ([entry(0), entry(1), checkpoint(1), entry(2)], [checkpoint(1), entry(2)], []),
        ([checkpoint(1), entry(2)], [checkpoint(1), entry(2)], [checkpoint(1)]),
        ([checkpoint(1), checkpoint(2)], [checkpoint(2)], [checkpoint(1), checkpoint(2)]),
        ([entry(0), checkpoint(2), entry(3)], [checkpoint(2), entry(3)], [checkpoint(2)]),
        ([*PARTS, entry(2)], [*PARTS, entry(2)], PARTS),
        ([entry(0), entry(1), checkpoint(1, 1, 2)], [entry(0), entry(1)], []),
        ([entry(0), "_last_checkpoint", f"{0:020}.crc"], [entry(0)], []),
    ],
)  # fmt: skip
def test_which_files_of_a_log_are_needed(
    tmp_path: Path, names: list[str], newest: list[str], needed: list[str]
) -> None:
    log = log_of(tmp_path, *names, f"{0:020}.{1:020}.compacted.json")
    assert sorted(told(log.newest())) == sorted(newest)
    assert sorted(told(log.check_whole())) == sorted(needed)
    commits = [name for name in names if name.endswith(".json")]
    assert sorted(told(log.all())) == sorted([*commits, f"{0:020}.{1:020}.compacted.json", *needed])


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        ([], 0),
        ([entry(1)], 0),
        ([entry(0), entry(2)], 1),
        ([checkpoint(1, 1, 2), entry(2)], 0),
        ([checkpoint(1), entry(3)], 2),
        ([checkpoint(0), entry(1), entry(3)], 2),
    ],
)
def test_a_log_that_lacks_an_entry_tells_of_no_orphan(tmp_path: Path, names: list[str], missing: int) -> None:
    log = log_of(tmp_path, *names)
    with pytest.raises(CorruptTable, match="does not say which files") as told:
        log.all()
    assert f"entry {missing} is missing" in (told.value.why or "")


@pytest.mark.parametrize("name", [f"{1:020}.checkpoint.80a083e8.json", f"{1:020}.checkpoint.80a083e8.parquet"])
def test_a_checkpoint_of_version_two_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(IncompatibleTable, match="checkpoint of version 2"):
        log_of(tmp_path, entry(0), name)


def test_names_in_files_of_a_log(tmp_path: Path) -> None:
    files = pafs.LocalFileSystem()
    name = f"a=1/{STEM}.parquet"
    (tmp_path / entry(0)).write_text(json.dumps({"add": {"path": name}}))
    assert _names(files, str(tmp_path / entry(0))) == {STEM}
    assert _names(files, str(tmp_path / entry(1))) is None
    paths = pa.array([{"path": name}, None], pa.struct([("path", pa.string())]))
    for column in ("add", "remove"):
        pq.write_table(pa.table({column: paths, "txn": pa.array([None, 1])}), tmp_path / checkpoint(1))
        assert _names(files, str(tmp_path / checkpoint(1))) == {STEM}
    empty = pa.nulls(2, pa.struct([("path", pa.string())]))
    pq.write_table(pa.table({"add": paths, "sidecar": empty}), tmp_path / checkpoint(1))
    assert _names(files, str(tmp_path / checkpoint(1))) == {STEM}
    pq.write_table(pa.table({"add": paths, "sidecar": paths}), tmp_path / checkpoint(1))
    with pytest.raises(IncompatibleTable, match="checkpoint of version 2"):
        _names(files, str(tmp_path / checkpoint(1)))
    (tmp_path / checkpoint(1)).write_bytes(b"PAR1")
    with pytest.raises(CorruptTable, match="is not a checkpoint"):
        _names(files, str(tmp_path / checkpoint(1)))


@pytest.mark.parametrize(
    ("info", "rows"),
    [
        ({"operationMetrics": {"numOutputRows": "7"}}, 7),
        ({"operationMetrics": {"num_added_rows": 7}}, 7),
        ({"operationMetrics": {"numOutputRows": "7", "num_added_rows": 8}}, 7),
        ({"operationMetrics": '{"numOutputRows": "7"}'}, 7),
        ({"operationMetrics": {"numFiles": "7"}}, None),
        ({"operationMetrics": {"numOutputRows": "many"}}, None),
        ({"operationMetrics": {"numOutputRows": None}}, None),
        ({"operationMetrics": {"numOutputRows": float("inf")}}, None),
        ({"operationMetrics": "{"}, None),
        ({"operationMetrics": "[" * 100_000}, None),
        ({"operationMetrics": []}, None),
        ({"operationMetrics": 7}, None),
        ({}, None),
    ],
)
def test_rows_that_a_commit_tells(info: dict[str, Any], rows: int | None) -> None:
    assert commit_rows(info) == rows


def test_a_commit_as_the_history_tells_it() -> None:
    ours = {"operation": "WRITE", "timestamp": 5, "laketier.pipeline": "p", "laketier.epoch": 3}
    found = _snapshot_info(9, ours)
    assert (found.snapshot_id, found.committed_at, found.operation) == (9, 5, "write")
    assert (found.pipeline, found.epoch, found.rows) == ("p", 3, None)
    odd = _snapshot_info(0, {"operation": 7, "timestamp": "5", "laketier.epoch": "3"})
    assert (odd.operation, odd.committed_at, odd.pipeline, odd.epoch) == ("7", None, None, None)
    assert _snapshot_info(0, {}).operation == "unknown"
    assert [timestamp_of({"timestamp": each}) for each in (5, True, 5.0, None)] == [5, None, None, None]


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (1500, "1970-01-01T00:00:01.500000+00:00"),
        (2**62, f"{2**62} ms since the epoch"),
        (-(2**62), f"{-(2**62)} ms since the epoch"),
    ],
)
def test_a_moment_is_told_however_far_it_is(milliseconds: int, text: str) -> None:
    assert _moment(milliseconds) == text


@pytest.mark.parametrize(
    ("kind", "required"),
    [
        ({"type": "struct", "fields": [{"nullable": False, "type": "long"}]}, True),
        ({"type": "struct", "fields": [{"nullable": True, "type": "long"}]}, False),
        ({"type": "struct", "fields": [{"nullable": True, "type": "x"}, {"nullable": False, "type": "x"}]}, True),
        ({"fields": [{"nullable": True, "type": {"fields": [{"nullable": False, "type": "long"}]}}]}, True),
        ({"elementType": {"fields": [{"nullable": False, "type": "long"}]}}, True),
        ({"keyType": {"fields": [{"nullable": False, "type": "long"}]}}, True),
        ({"keyType": "long", "valueType": {"fields": [{"nullable": False, "type": "long"}]}}, True),
        ({"keyType": "long", "valueType": "long"}, False),
        ("long", False),
    ],
)
def test_what_makes_a_table_need_invariants(kind: Any, required: bool) -> None:
    assert _has_required(kind) is required
    for named in (None, ["invariants"], ["timestampNtz"], []):
        protocol, schema = SimpleNamespace(writer_features=named), SimpleNamespace(to_json=lambda: json.dumps(kind))
        handle: Any = SimpleNamespace(protocol=lambda p=protocol: p, schema=lambda s=schema: s)
        assert lacks_invariants(handle) is (required and named in (["timestampNtz"], []))


def test_each_field_of_a_type_is_looked_at() -> None:
    inner = {"fields": [{"name": "x", "type": "long", "metadata": {"m": 1}}]}
    kind = {
        "fields": [
            {"name": "a", "type": "long"},
            {"name": "b", "type": inner, "metadata": {"k": 2}},
            {"name": "c", "type": {"elementType": inner}},
            {"name": "d", "type": {"keyType": inner, "valueType": {"elementType": inner}}},
        ]
    }
    found = [("a", {}), ("b", {"k": 2}), ("b.x", {"m": 1}), ("c", {}), ("c.x", {"m": 1}), ("d", {})]
    assert _columns(kind) == [*found, ("d.x", {"m": 1}), ("d.x", {"m": 1})]


@pytest.mark.parametrize("key", ["delta.checkpointInterval", "delta.dataSkippingNumIndexedCols"])
def test_a_property_that_is_no_number_is_told(key: str) -> None:
    for text in ("x", "", "1.5"):
        with pytest.raises(ValueError, match=f"{key} is {text!r}"):
            check_properties({key: text})
    check_properties({key: "-1"})
    assert (integer_property({key: "7"}, key, 3), integer_property({}, key, 3)) == (7, 3)
    assert [has_feed({"delta.enableChangeDataFeed": text}) for text in ("true", "TRUE", "false", "x")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert not has_feed({})


@pytest.mark.parametrize(
    ("declared", "plain", "padded"),
    [
        ("char(3)", True, True),
        ("CHAR(3)", True, True),
        ("varchar(3)", True, False),
        ("varchar(3)\n", False, False),
        ("array<char(3)>", False, False),
        ("string", False, False),
        ("", False, False),
    ],
)
def test_what_was_declared_with_a_length(declared: str, plain: bool, padded: bool) -> None:
    assert (is_plain(declared), is_padded(declared)) == (plain, padded)


def test_lengths_are_counted_in_characters() -> None:
    batch = pa.RecordBatch.from_pydict({"a": ["éé", None], "b": pa.nulls(2, pa.string())})
    check_lengths(batch, {"a": "char(2)", "b": "varchar(0)"})
    with pytest.raises(IncompatibleData, match=r"'a' has a value of 2 characters, and it is varchar\(1\)"):
        check_lengths(batch, {"b": "char(1)", "a": "varchar(1)"})


@pytest.mark.parametrize(
    ("text", "silent"),
    [
        (None, False),
        ("", False),
        ("2026-01-01 00:00:00", True),
        ("2026-01-01T00:00:00.000001", True),
        ("2026-01-01T00:00:00Z", False),
        ("2026-01-01T00:00:00+01:00", False),
        ("2026-01-01T00:00:00-01:00", False),
        ("2026-01-01", True),
    ],
)
def test_which_texts_say_no_zone(text: str | None, silent: bool) -> None:
    assert _is_silent(text) is silent


def test_values_of_partitions_in_the_order_of_the_log(tmp_path: Path) -> None:
    files = pafs.LocalFileSystem()
    actions = [
        {"commitInfo": {}},
        {"add": {"path": "a", "partitionValues": {"at": "x"}}},
        {"remove": {"path": "a"}},
        {"add": {"path": "b"}},
    ]
    (tmp_path / entry(0)).write_text("\n\n".join(map(json.dumps, actions)))
    assert list(_values(files, str(tmp_path / entry(0)))) == [("a", {"at": "x"}), ("a", None), ("b", None)]
    kind = pa.struct([("path", pa.string()), ("partitionValues", pa.map_(pa.string(), pa.string()))])
    adds = pa.array([{"path": "a", "partitionValues": [("at", "x")]}, None, {"path": "b"}], kind)
    pq.write_table(pa.table({"add": adds}), tmp_path / checkpoint(1))
    assert list(_values(files, str(tmp_path / checkpoint(1)))) == [("a", {"at": "x"}), ("b", {})]
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("day", pa.date32())])
    assert zoned_partitions(schema, ["day", "local", "at"]) == ["at"]


def test_empty_texts_of_partitions_become_null_and_nothing_else_does() -> None:
    batch = pa.RecordBatch.from_pydict({"a": ["", "x", None], "b": ["", "", ""], "n": [1, 2, 3]})
    found = empty_as_null(batch, ["a", "n"])
    assert found.to_pydict() == {"a": [None, "x", None], "b": ["", "", ""], "n": [1, 2, 3]}
    assert empty_as_null(found, ["a"]).equals(found)
    strict = pa.schema([pa.field("a", pa.string(), nullable=False)])
    with pytest.raises(IncompatibleData, match="'a' has empty strings, and is not null"):
        empty_as_null(pa.RecordBatch.from_arrays([pa.array([""])], schema=strict), ["a"])
    assert empty_as_null(pa.RecordBatch.from_arrays([pa.array(["x"])], schema=strict), ["a"]).num_rows == 1


NOON = datetime(2026, 1, 1, 12)
PARTITIONED = pa.schema([("at", pa.timestamp("us", "UTC")), ("n", pa.int32()), ("v", pa.string())])


@pytest.mark.parametrize(
    ("raw", "kind", "text"),
    [
        (None, pa.int32(), None),
        ("", pa.string(), None),
        ("7", pa.int32(), "7"),
        ("007", pa.int32(), "7"),
        ("2026-01-01", pa.date32(), "2026-01-01"),
        ("1.50", pa.decimal128(9, 2), "1.50"),
        ("2026-01-01 12:00:00", pa.timestamp("us"), "2026-01-01 12:00:00"),
        ("2026-01-01 12:00:00", pa.timestamp("us", "UTC"), "2026-01-01 12:00:00"),
        ("2026-01-01T13:00:00+01:00", pa.timestamp("us", "UTC"), "2026-01-01 12:00:00"),
    ],
)
def test_a_value_of_the_log_is_spelled_as_the_core_spells_it(raw: str | None, kind: pa.DataType, text: str) -> None:
    assert text_of_log(raw, kind) == text
    value = partition_scalar(text, kind)
    assert value.type == kind
    expected: dict[str, Any] = {"7": 7, "2026-01-01": date(2026, 1, 1), "1.50": Decimal("1.50")}
    if pa.types.is_timestamp(kind):
        assert value.as_py() == (NOON if kind.tz is None else NOON.replace(tzinfo=UTC))
    else:
        assert value.as_py() == (None if text is None else expected[text])


@pytest.mark.parametrize("raw", ["x", "10000-01-01 00:00:00", "2026-13-01"])
def test_a_time_that_is_none_is_told(raw: str) -> None:
    with pytest.raises(IncompatibleTable, match="no time between the years 1 and 9999"):
        text_of_log(raw, pa.timestamp("us"))
    with pytest.raises(IncompatibleTable, match=f"partition value {raw!r}, which is no date32"):
        text_of_log(raw, pa.date32())


def staged(path: str, **values: str | None) -> WriteResult:
    file = StagedFile(path=path, rows=1, bytes=1, partition=tuple(values.items()))
    return WriteResult(attempt=ATTEMPT, table_uuid="t", schema_fingerprint=FINGERPRINT, spec_id=0, files=(file,))


GOOD = file_path(["n", "v"], [7, "x y"], STEM, None)


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (staged(GOOD, n="7", v="x y"), None),
        (staged(file_path(["n", "v"], [None, None], STEM, 2), n=None, v=None), None),
        (staged(GOOD, n="7"), "it names the columns ['n'], and the table is partitioned by ['n', 'v']"),
        (staged(GOOD, v="x y", n="7"), "it names the columns ['v', 'n']"),
        (staged(GOOD, n="x", v="x y"), "'x' is no int32 as laketier spells it (column 'n')"),
        (staged(GOOD, n="07", v="x y"), "'07' is no int32"),
        (staged(GOOD, n="99999999999", v="x y"), "is no int32"),
        (staged(GOOD, n="8", v="x y"), "it lies in another folder"),
        (staged(f"{STEM}.parquet", n="7", v="x y"), "it lies in another folder"),
        (staged(GOOD, n="7", v=""), "is no string"),
        (staged(GOOD, n="7", v="__HIVE_DEFAULT_PARTITION__"), "can't name a folder"),
    ],
)
def test_a_file_is_taken_for_the_partition_that_it_lies_in(result: WriteResult, why: str | None) -> None:
    if why is None:
        check_partitions([result], ["n", "v"], PARTITIONED, where="t")
    else:
        with pytest.raises(OutsideTable, match="nothing was published") as told:
            check_partitions([result], ["n", "v"], PARTITIONED, where="t")
        assert why in (told.value.why or "")


def test_an_instant_of_a_partition_is_spelled_in_utc() -> None:
    value = NOON.replace(tzinfo=timezone(timedelta(hours=1)))
    path = file_path(["at"], [value], STEM, None)
    text = "2026-01-01T11:00:00.000000Z"
    check_partitions([staged(path, at=text)], ["at"], PARTITIONED, where="t")
    for other in ("2026-01-01 11:00:00", "2026-01-01T12:00:00.000000+01:00"):
        with pytest.raises(OutsideTable):
            check_partitions([staged(path, at=other)], ["at"], PARTITIONED, where="t")


def test_rows_take_the_shape_of_the_table() -> None:
    schema = pa.schema([("n", pa.int32()), ("v", pa.string()), ("more", pa.float64())])
    batch = pa.RecordBatch.from_pydict({"v": ["a", "b"]})
    found = _shaped(batch, schema, {"n": "7"}, "a file")
    assert found.schema == schema
    assert found.to_pydict() == {"n": [7, 7], "v": ["a", "b"], "more": [None, None]}
    assert _shaped(batch, schema, {"n": None}, "a file").to_pydict()["n"] == [None, None]
    assert _shaped(batch, pa.schema([]), {"n": "7"}, "a file").num_rows == 2


def test_a_file_is_plain_only_with_all_columns() -> None:
    """By its name, which tells the schema, or by statistics of each column."""
    from laketier.spi import schema_fingerprint

    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    named = file_path([], [], stem_of(schema_fingerprint(schema), ATTEMPT, 0), None)
    counts = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    nulls = [None, {"a": 0, "b": 0}, {"a": 0, "b": None}, None]
    files = pa.table({"path": [named, "x", "y", f"{STEM}.parquet"], "null_count": pa.array(nulls, counts)})
    assert _whole(files, schema, []) == [True, True, False, False]
    assert _whole(files, schema, ["p"]) == [False] * 4
    assert _whole(files.select(["path"]), schema, []) == [True, False, False, False]
    nested = pa.schema([("a", pa.int64()), ("b", pa.struct([("x", pa.int64())]))])
    assert _whole(files, nested, []) == [False, True, False, False]
    inner = pa.array([{"a": 0, "b": {"x": 0}}] * 4)
    assert _whole(files.set_column(1, "null_count", inner), nested, []) == [False] * 4
