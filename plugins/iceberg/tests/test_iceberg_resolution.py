"""Which column of a file is which of the table: name mappings, partition values, defaults, promotions."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.spi import (
    AddColumn,
    CorruptTable,
    FeatureNotSupported,
    Leaf,
    Op,
    PartitionField,
    RenameColumn,
    ScanRequest,
    WriteMode,
)
from laketier.tables.scan import scan
from laketier.tiering import TieringRound
from laketier_iceberg.projection import Projection
from laketier_iceberg.promotion import promoted
from laketier_iceberg.resolution import NAME_MAPPING

SCHEMA = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("note", pa.string())])


def plan(table: Any, **request: Any) -> Any:
    return table.storage.source(table.info).plan(ScanRequest(**request))


def add_file(table: Any, rows: list[dict[str, Any]], schema: pa.Schema, name: str = "moved.parquet") -> Path:
    """A file without field ids, as Spark's and pyiceberg's `add_files` register it."""
    path = Path(table.info.location, "data", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    table.table().add_files([str(path)])
    return path


def reload(table: Any) -> None:
    table.info = table.storage.catalog().load_table(table.info.path)
    table.factory = table.storage.tiering_factory(table.info)


def theirs(table: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.table().scan().to_arrow().sort_by("id").to_pylist()
    return found


def ours(table: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.read().sort_by("id").to_pylist()
    return found


@pytest.fixture
def moved(make: Callable[..., Any]) -> Any:
    """A table with a file without ids, of which a column was renamed since."""
    table = make(SCHEMA)
    add_file(table, [{"id": i, "price": i / 2, "note": f"n{i}"} for i in range(4)], SCHEMA)
    table.storage.catalog().alter_table(table.info.path, [RenameColumn("price", "amount")])
    reload(table)
    return table


def test_a_renamed_column_is_found_by_the_name_it_had_in_the_file(moved: Any) -> None:
    assert [row["amount"] for row in ours(moved)] == [0.0, 0.5, 1.0, 1.5]
    assert ours(moved) == theirs(moved)
    [split] = plan(moved).splits
    assert split.plain_parquet is None, "Spark's own reader goes by the names of today"


def test_the_incremental_read_finds_it_too(moved: Any) -> None:
    source = moved.storage.source(moved.info)
    log = moved.storage.changes(moved.info)
    changes = log.plan(1, log.versions().latest)
    rows = [
        row for split in changes.splits for batch in source.read(split, changes.schema) for row in batch.to_pylist()
    ]
    assert [row["amount"] for row in rows] == [0.0, 0.5, 1.0, 1.5]


def test_an_upsert_of_a_neighbour_writes_the_values_and_no_nulls(make: Callable[..., Any]) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("price", pa.float64()), ("note", pa.string())])
    table = make(schema, primary_key=("id",))
    add_file(table, [{"id": i, "price": i / 2, "note": f"n{i}"} for i in range(4)], schema)
    table.storage.catalog().alter_table(table.info.path, [RenameColumn("price", "amount")])
    reload(table)
    [split] = plan(table).splits
    source = table.storage.source(table.info)
    kept = pa.Table.from_batches(source.read(split, plan(table).schema)).filter(pa.compute.field("id") != 2)
    new = pa.table({"id": [2], "amount": [9.0], "note": ["new"]}).cast(kept.schema)
    staged = replace(table.stage(*kept.to_batches(), *new.to_batches()), replaced=split.files)
    tiering = TieringRound(table.factory, token=table.token(0), mode=WriteMode.UPSERT)
    tiering.begin()
    tiering.commit([staged])
    assert [(row["id"], row["amount"]) for row in theirs(table)] == [(0, 0.0), (1, 0.5), (2, 9.0), (3, 1.5)]
    assert ours(table) == theirs(table)


@pytest.mark.parametrize(
    ("leaf", "ids"),
    [
        (Leaf("amount", Op.GE, 1.0), [2, 3]),
        (Leaf("amount", Op.IS_NULL), []),
        (Leaf("amount", Op.LT, 0.0), []),
        (Leaf("price", Op.GE, 1.0), [0, 1, 2, 3]),
    ],
)
def test_filters_go_by_the_column_and_not_by_its_name(moved: Any, leaf: Leaf, ids: list[int]) -> None:
    """A new column now has the name that the other one has in the file."""
    from pyiceberg.types import DoubleType

    with moved.table().update_schema() as update:
        update.add_column("price", DoubleType())
    mapping = json.loads(moved.table().properties[NAME_MAPPING])
    # Java's rule, and pyiceberg's: the name is the new column's from now on, also in files that are there.
    assert [(m["field-id"], m["names"]) for m in mapping] == [
        (1, ["id"]),
        (2, ["amount"]),
        (3, ["note"]),
        (4, ["price"]),
    ]
    for entry in mapping:
        entry["names"] = {2: ["price"], 4: ["later"]}.get(entry["field-id"], entry["names"])
    with moved.table().transaction() as changes:
        changes.set_properties({NAME_MAPPING: json.dumps(mapping)})
    if leaf.column == "price":
        leaf, ids = Leaf("price", Op.IS_NULL), [0, 1, 2, 3]
    assert _scanned(moved, leaf) == ids
    assert theirs(moved) == ours(moved)


def test_nested_fields_are_found_by_their_names_of_then(make: Callable[..., Any]) -> None:
    from pyiceberg.types import IntegerType, LongType

    point = pa.struct([("x", pa.int32()), ("y", pa.int32())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("s", pa.struct([("p", point)])),
            ("l", pa.list_(point)),
            ("m", pa.map_(pa.string(), point)),
            ("ll", pa.list_(pa.list_(pa.int32()))),
        ]
    )
    one = {"x": 1, "y": 2}
    rows = [
        {"id": 0, "s": {"p": one}, "l": [one, None], "m": [("k", one), ("n", None)], "ll": [[1], None, []]},
        {"id": 1, "s": None, "l": [], "m": [], "ll": []},
        {"id": 2, "s": {"p": None}, "l": None, "m": None, "ll": None},
    ]
    table = make(schema)
    add_file(table, rows, schema)
    with table.table().update_schema() as update:
        for above in ("s.p", "l.element", "m.value"):
            update.rename_column(f"{above}.x", "z").delete_column(f"{above}.y")
        update.update_column("ll.element.element", LongType())
    with table.table().update_schema() as update:
        update.add_column(("s", "p", "new"), IntegerType())
        update.rename_column("s.p", "q").rename_column("m", "mm")
    reload(table)
    z = {"z": 1}
    assert ours(table) == [
        {"id": 0, "s": {"q": {**z, "new": None}}, "l": [z, None], "mm": [("k", z), ("n", None)], "ll": [[1], None, []]},
        {"id": 1, "s": None, "l": [], "mm": [], "ll": []},
        {"id": 2, "s": {"q": None}, "l": None, "mm": None, "ll": None},
    ]


def test_a_file_whose_schema_was_expired_is_not_given_to_readers_that_go_by_names(make: Callable[..., Any]) -> None:
    """Spark's `expire_snapshots` with clean_expired_metadata forgets the schema in which a column had its old name."""
    table = make(SCHEMA)
    row = {"id": 1, "price": 0.5, "note": "n"}
    table.round(table.token(0), pa.RecordBatch.from_pylist([row], schema=SCHEMA))
    assert plan(table).splits[0].plain_parquet is not None
    table.storage.catalog().alter_table(table.info.path, [RenameColumn("price", "amount")])
    reload(table)
    table.round_of(table.token(1))
    path = Path(table.table().metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    for log in ("snapshots", "snapshot-log"):
        document[log] = document[log][-1:]
    document["snapshots"][0].pop("parent-snapshot-id")
    document["schemas"] = document["schemas"][-1:]
    path.write_text(json.dumps(document))
    [split] = plan(table).splits
    assert split.plain_parquet is None
    assert ours(table) == [{"id": 1, "amount": 0.5, "note": "n"}]


def _set_mapping(table: Any, mapping: Any) -> None:
    text = mapping if isinstance(mapping, str) else json.dumps(mapping)
    with table.table().transaction() as changes:
        changes.set_properties({NAME_MAPPING: text})


def test_a_field_may_have_several_names_and_case_counts(make: Callable[..., Any]) -> None:
    table = make(SCHEMA)
    add_file(table, [{"id": 1, "price": 2.0, "note": "n"}], SCHEMA, "a.parquet")
    path = Path(table.info.location, "data", "a.parquet")
    pq.write_table(pa.table({"id": [1], "cost": [2.0], "NOTE": ["n"]}), path)
    names = [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["price", "cost"]}, {"names": ["NOTE"]}]
    _set_mapping(table, names)
    assert ours(table) == [{"id": 1, "price": 2.0, "note": None}]
    _set_mapping(table, [*names[:2], {"field-id": 3, "names": ["note", "NOTE"]}])
    assert ours(table) == [{"id": 1, "price": 2.0, "note": "n"}] == theirs(table)
    pq.write_table(pa.table({"id": [1], "cost": [2.0], "price": [3.0]}), path)
    with pytest.raises(CorruptTable, match="'cost' and 'price'"):
        ours(table)


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ("", "Invalid JSON"),
        ("{", "Invalid JSON"),
        ('{"field-id": 1}', "valid array"),
        ('[{"field-id": 1}]', "no list of names"),
        ('[{"field-id": "x", "names": ["id"]}]', "valid integer"),
        ('[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["a"]}]', "given to two fields"),
        ('[{"field-id": 1, "names": ["a"]}, {"field-id": 1, "names": ["b"]}]', "is there twice"),
        ('[{"field-id": 9, "names": ["s"], "fields": [{"names": ["a"]}, {"names": ["a"]}]}]', "given to two fields"),
    ],
)
def test_a_mapping_that_says_nothing_clear_is_refused_before_reading(moved: Any, mapping: str, why: str) -> None:
    _set_mapping(moved, mapping)
    with pytest.raises(CorruptTable, match=f"{NAME_MAPPING} can't be understood.*{why}"):
        plan(moved)
    with pytest.raises(CorruptTable, match=f"{NAME_MAPPING} can't be understood"):
        moved.storage.catalog().alter_table(moved.info.path, [RenameColumn("amount", "total")])


def test_files_without_ids_in_a_table_without_a_mapping_are_refused_by_name(moved: Any) -> None:
    with moved.table().transaction() as changes:
        changes.remove_properties(NAME_MAPPING)
    with pytest.raises(FeatureNotSupported, match=r"moved\.parquet have no ids.*which of them is 'id'.*add_files"):
        ours(moved)


def test_a_file_with_ids_for_some_columns_only(moved: Any) -> None:
    """Its ids win; a column without one is what the mapping says (specification, column projection)."""
    path = Path(moved.info.location, "data", "moved.parquet")
    key = pa.field("other", pa.int64(), metadata={"PARQUET:field_id": "1"})
    table = pa.table(
        [pa.array([7]), pa.array([0.5]), pa.array([99])],
        schema=pa.schema([key, ("price", pa.float64()), ("id", pa.int64())]),
    )
    pq.write_table(table, path)
    assert ours(moved) == [{"id": 7, "amount": 0.5, "note": None}]
    with moved.table().transaction() as changes:
        changes.remove_properties(NAME_MAPPING)
    assert moved.read(columns=("id",))["id"].to_pylist() == [7]
    with pytest.raises(FeatureNotSupported, match="which of them is 'amount'"):
        ours(moved)


def test_two_columns_with_one_id_are_refused(moved: Any) -> None:
    path = Path(moved.info.location, "data", "moved.parquet")
    same = [pa.field(name, pa.int64(), metadata={"PARQUET:field_id": "1"}) for name in ("a", "b")]
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], schema=pa.schema(same)), path)
    with pytest.raises(CorruptTable, match=r"'a' and 'b'.*same field id"):
        moved.read(columns=("id",))


VALUES: list[tuple[pa.DataType, Any]] = [
    (pa.int32(), 7), (pa.int64(), 2**40), (pa.string(), "ü'{}"), (pa.date32(), datetime.date(1969, 7, 20)),
    (pa.timestamp("us"), datetime.datetime(2020, 1, 1, 1, 2, 3, 4)),
    (pa.timestamp("us", "UTC"), datetime.datetime(1969, 1, 1, 1, 2, 3, 4, datetime.UTC)),
    (pa.bool_(), False), (pa.decimal128(9, 2), Decimal("-12.50")), (pa.binary(), b"\x00\xff"),
    (pa.time64("us"), datetime.time(1, 2, 3, 4)), (pa.binary(3), b"abc"), (pa.string(), ""),
]  # fmt: skip


def _staged_without_partition_columns(table: Any, *rows: dict[str, Any]) -> Any:
    """Files as Hive has them: the partitions' columns are neither in them nor in their metrics."""
    results = []
    for row in rows:
        staged = table.stage(pa.RecordBatch.from_pylist([row], schema=table.info.schema))
        [file] = staged.files
        path = Path(table.info.location, file.path)
        pq.write_table(pq.read_table(path, partitioning=None).select(["id"]), path)
        metrics = json.loads(file.payload["metrics"])
        payload = {**file.payload, "metrics": json.dumps({**metrics, "columns": {"1": metrics["columns"]["1"]}})}
        results.append(replace(staged, files=(replace(file, bytes=path.stat().st_size, payload=payload),)))
    return results


def test_partition_columns_that_a_file_lacks_are_those_of_its_partition(make: Callable[..., Any]) -> None:
    parts = {f"p{index}": value for index, (_, value) in enumerate(VALUES)}
    schema = pa.schema([("id", pa.int64()), *((f"p{index}", kind) for index, (kind, _) in enumerate(VALUES))])
    table = make(schema, partition_by=tuple(PartitionField(name) for name in parts))
    rows = [{"id": 1, **parts}, {"id": 2, **dict.fromkeys(parts)}]
    table.round_of(table.token(0), *_staged_without_partition_columns(table, *rows))
    assert all(split.plain_parquet is None for split in plan(table).splits)
    assert ours(table) == rows == theirs(table)
    for name, value in parts.items():
        assert sorted(table.read(columns=(name,))[name].to_pylist(), key=str) == sorted([value, None], key=str)
        assert _scanned(table, Leaf(name, Op.EQ, value)) == [1]
        assert _scanned(table, Leaf(name, Op.IS_NULL)) == [2]


def _scanned(table: Any, *filters: Leaf) -> list[int]:
    _, batches = scan(table.storage.source(table.info), ScanRequest(filters=filters))
    return sorted(i for batch in batches for i in batch.column("id").to_pylist())


def test_int96_of_any_year_is_read_as_what_it_says(make: Callable[..., Any]) -> None:
    """Spark's and Hive's timestamps of old. 9999-12-31 for "until further notice" is no nanosecond of int64."""
    from laketier.connectors import ParquetFolder

    kind = pa.timestamp("us", "UTC")
    schema = pa.schema([("id", pa.int64()), ("until", kind), ("s", pa.struct([("at", kind)]))])
    moments = [datetime.datetime(year, 12, 31, 23, 59, tzinfo=datetime.UTC) for year in (1, 1600, 1969, 2024, 9999)]
    rows = [{"id": i, "until": at, "s": {"at": at}} for i, at in enumerate(moments)]
    table = make(schema)
    path = add_file(table, rows, schema)
    for stored in (True, False):
        whole = pa.Table.from_pylist(rows, schema=schema)
        pq.write_table(whole, path, use_deprecated_int96_timestamps=True, store_schema=stored)
        assert {pq.ParquetFile(path).schema.column(i).physical_type for i in (1, 2)} == {"INT96"}
        assert ours(table) == rows
        folder = ParquetFolder(str(path.parent))
        wanted, batches = scan(folder, ScanRequest())
        found = pa.Table.from_batches(batches, schema=wanted)
        assert [at.replace(tzinfo=datetime.UTC) for at in found["until"].to_pylist()] == moments


def test_a_list_where_the_table_has_a_number_is_told_with_the_file(make: Callable[..., Any]) -> None:
    """No cast is tried, whose error would name neither."""
    table = make(SCHEMA)
    path = add_file(table, [{"id": 1}], SCHEMA)
    pq.write_table(pa.table({"id": [1], "price": [[1.0]], "note": ["a"]}), path)
    with pytest.raises(CorruptTable, match=r"'price' is double, and a file has it as list.*no promotion") as told:
        ours(table)
    assert str(path) in str(told.value)


def test_nanoseconds_are_read_where_microseconds_hold_them(make: Callable[..., Any]) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])
    table = make(schema)
    path = add_file(table, [{"id": 1, "at": datetime.datetime(2024, 1, 1)}], schema)
    for nanoseconds in (1_000, 1_001):
        at = pa.array([1_700_000_000_000_000_000 + nanoseconds], pa.timestamp("ns"))
        pq.write_table(pa.table({"id": [1], "at": at}), path)
        if nanoseconds % 1_000 == 0:
            assert ours(table)[0]["at"] == datetime.datetime(2023, 11, 14, 22, 13, 20, 1)
        else:
            with pytest.raises(CorruptTable, match="would lose data"):
                ours(table)


FAR = [("d", pa.date32(), 2_932_897), ("d", pa.date32(), -719_163), ("d", pa.date32(), -(2**31))]
FAR += [("t", pa.timestamp("us", zone), at) for zone in (None, "UTC") for at in (253_402_300_800_000_000, -(2**63))]


@pytest.mark.parametrize(("name", "kind", "value"), FAR, ids=str)
def test_partitions_beyond_the_years_that_python_has(
    make: Callable[..., Any], name: str, kind: pa.DataType, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java writes them without a word, and Arrow and Parquet hold them."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    table = make(pa.schema([("id", pa.int64()), (name, kind)]), partition_by=(PartitionField(name),))
    path = Path(table.info.location, "data", "far.parquet")
    path.parent.mkdir()
    schema = pa.schema([table.info.schema.field("id")])
    pq.write_table(pa.table({"id": [1]}, schema=schema), path)
    file = DataFile.from_args(
        content=DataFileContent.DATA, file_path=str(path), file_format=FileFormat.PARQUET, partition=Record(value),
        record_count=1, file_size_in_bytes=path.stat().st_size, column_sizes={1: 10}, value_counts={},
        null_value_counts={}, nan_value_counts={}, lower_bounds={}, upper_bounds={},
    )  # fmt: skip
    file.spec_id = 0
    with monkeypatch.context() as patched:
        # pyiceberg itself can't write such a commit: its summary counts partitions by dates of Python.
        patched.setattr(
            "pyiceberg.table.snapshots.SnapshotSummaryCollector.update_partition_metrics", lambda *_, **__: 0
        )
        with table.table().transaction() as change, change.update_snapshot().fast_append() as update:
            update.append_data_file(file)
    found = table.read()[name]
    assert found.cast(pa.int32() if name == "d" else pa.int64()).to_pylist() == [value]
    assert plan(table).splits[0].partition == ((name, str(value)),)


@pytest.mark.parametrize("item", [pa.int32(), pa.struct([("x", pa.int32())])], ids=str)
def test_a_slice_of_lists_and_maps_with_nulls_is_found_by_id(item: pa.DataType) -> None:
    def numbered(kind: pa.DataType, start: int) -> pa.DataType:
        if pa.types.is_struct(kind):
            fields = [kind.field(0).with_metadata({"PARQUET:field_id": str(start + 10)})]
            return pa.struct(fields)
        return kind

    item = numbered(item, 1)
    element = pa.field("element", item, metadata={"PARQUET:field_id": "2"})
    key = pa.field("key", pa.string(), nullable=False, metadata={"PARQUET:field_id": "3"})
    value = pa.field("value", item, metadata={"PARQUET:field_id": "2"})
    one = {"x": 1} if pa.types.is_struct(item) else 1
    lists = pa.array([[one], None, [one, one], None], pa.list_(element.with_name("item")))
    maps = pa.array([[("a", one)], None, [("b", one), ("c", None)], None], pa.map_(key, value))
    projection = Projection("f", None, {}, {})
    for array, kind in ((lists, pa.list_(element)), (maps, pa.map_(key, value))):
        target = pa.field("c", kind, metadata={"PARQUET:field_id": "1"})
        for start in range(4):
            part = array.slice(start)
            assert projection.project(part, target).to_pylist() == part.to_pylist()


def test_what_a_file_lacks_is_encoded_once_for_a_partition(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from laketier_iceberg import resolution

    schema = pa.schema([("id", pa.int64()), ("p0", pa.string())])
    table = make(schema, partition_by=(PartitionField("p0"),))
    rows = [{"id": i, "p0": "ab"[i % 2]} for i in range(4)]
    for epoch, row in enumerate(rows):
        table.round_of(table.token(epoch), *_staged_without_partition_columns(table, row))
    encoded: list[Any] = []
    encode = resolution.values_to_bytes
    monkeypatch.setattr(resolution, "values_to_bytes", lambda values: (encoded.append(values), encode(values))[1])
    assert len(plan(table).splits) == 4
    assert len(encoded) == 2
    assert ours(table) == rows


def _cleaned(table: Any, keep: int) -> None:
    """Spark's `expire_snapshots` with clean_expired_metadata: the last snapshots stay, and the schemas that they and
    the table have."""
    path = Path(table.table().metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    for log in ("snapshots", "snapshot-log"):
        document[log] = document[log][-keep:]
    needed = {document["current-schema-id"], *(snapshot["schema-id"] for snapshot in document["snapshots"])}
    document["schemas"] = [schema for schema in document["schemas"] if schema["schema-id"] in needed]
    path.write_text(json.dumps(document))


def _renamed(table: Any, old: str, new: str) -> None:
    table.storage.catalog().alter_table(table.info.path, [RenameColumn(old, new)])
    reload(table)


def test_a_file_of_a_forgotten_schema_is_not_plain_where_ids_of_schemas_leave_no_gap(make: Callable[..., Any]) -> None:
    """A column is renamed and back: the table is at schema 0 again, and the file between has the other name."""
    table = make(pa.schema([("id", pa.int64())]))
    _renamed(table, "id", "other")
    table.round(table.token(0), pa.RecordBatch.from_pylist([{"other": 1}], schema=table.info.schema))
    _renamed(table, "other", "id")
    table.round(table.token(1), pa.RecordBatch.from_pylist([{"id": 2}], schema=table.info.schema))
    _cleaned(table, 1)
    assert {schema.schema_id for schema in table.table().metadata.schemas} == {0}
    plain = [split.plain_parquet for split in plan(table).splits if split.plain_parquet]
    assert [pq.read_table(path, partitioning=None)["id"].to_pylist() for path in plain] == [[2]]
    assert table.ids() == [1, 2] == sorted(table.read()["id"].to_pylist())


def test_files_of_expired_snapshots_are_plain_after_one_look(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from laketier_iceberg import plain

    point = pa.struct([("x", pa.int32())])
    schema = pa.schema([*SCHEMA, ("s", point), ("l", pa.list_(point)), ("at", pa.timestamp("us", "UTC"))])
    table = make(schema)
    for epoch in range(4):
        row = {"id": epoch, "price": 0.5, "note": "n", "l": [{"x": 1}], "at": datetime.datetime.now(datetime.UTC)}
        table.round(table.token(epoch), pa.RecordBatch.from_pylist([row], schema=schema))
    looks: list[str] = []
    look = plain._in_footer
    monkeypatch.setattr(plain, "_in_footer", lambda *given: (looks.append(given[0]), look(*given))[1])
    assert all(split.plain_parquet for split in plan(table).splits)
    assert looks == [], "while every snapshot is there"
    _cleaned(table, 2)
    with monkeypatch.context() as patched:
        patched.setattr(plain, "MOST_FOOTERS", 3)
        assert not any(split.plain_parquet for split in plan(table).splits)
        assert looks == []
    for _ in range(2):
        assert all(split.plain_parquet for split in plan(table).splits)
    assert len(looks) == 4


def test_values_inside_of_maps_and_lists_are_promoted_and_nothing_else_is() -> None:
    """Others may widen what is inside of a column. A number is never made of what is none, nor the other way round."""
    projection = Projection("a file", None, {}, {})
    for kind in (lambda value: pa.map_(pa.string(), value), pa.list_):
        old, new = kind(pa.int32()), kind(pa.int64())
        array = pa.array([[("a", 7)] if pa.types.is_map(old) else [7], None], old)
        found = projection.project(array, pa.field("c", new))
        assert found.type == new
        assert found.to_pylist() == array.to_pylist()
    assert promoted(pa.array([1]), pa.bool_()) is None


def test_a_change_of_columns_leaves_what_names_the_others_had(events: Any) -> None:
    """A mapping of another tool's may lack a column's name of today: files without ids have it under another one."""
    mapping = '[{"field-id": 1, "names": ["x"]}, {"field-id": 2, "names": ["s"]}]'
    with events.table().transaction() as change:
        change.set_properties({NAME_MAPPING: mapping})
    events.storage.catalog().alter_table(events.info.path, [AddColumn(pa.field("new", pa.int64()))])
    found = json.loads(events.table().metadata.properties[NAME_MAPPING])
    names = {each["field-id"]: each["names"] for each in found}
    assert names == {1: ["x"], 2: ["s"], 3: ["new"]}


def test_dictionaries_are_read_as_what_they_stand_for() -> None:
    """Other tools write a column of few values so, also within a struct, and pyarrow tells their type."""
    projection = Projection("a file", None, {}, {})
    texts = pa.array(["a", None, "b", "a"])
    field = pa.field("c", pa.string(), metadata={"PARQUET:field_id": "1"})
    assert projection.project(texts.dictionary_encode(), field).equals(texts)
    assert projection.project(
        pa.array([7, None]).cast(pa.int32()).dictionary_encode(), field.with_type(pa.int64())
    ).equals(pa.array([7, None]))
    within = pa.StructArray.from_arrays(
        [texts.dictionary_encode()], fields=[field.with_type(pa.dictionary(pa.int32(), pa.string()))]
    )
    wanted = pa.field("s", pa.struct([field]), metadata={"PARQUET:field_id": "2"})
    assert projection.project(within, wanted).to_pylist() == [{"c": each} for each in texts.to_pylist()]


@pytest.mark.parametrize(
    "make", [pa.list_, pa.large_list, partial(pa.list_, list_size=1), pa.list_view, pa.large_list_view]
)
def test_lists_of_each_kind_are_read_as_the_table_has_them(make: Callable[[pa.DataType], pa.DataType]) -> None:
    """pyarrow writes into a file which kind it was, and reads it so. Its own cast of a view gives lists with other
    items."""
    projection = Projection("a file", None, {}, {})
    wanted = pa.field("c", pa.list_(pa.field("element", pa.int64())), metadata={"PARQUET:field_id": "1"})
    for values in ([[1], None, [2]], [[3]], [], [None, None], [[1]] * 70):
        array = pa.array(values, make(pa.int32()))
        for part in (array, pa.concat_arrays([array, array]).slice(1)):
            found = projection.project(part, wanted)
            found.validate(full=True)
            assert (found.type, found.to_pylist()) == (wanted.type, part.to_pylist())


def test_a_view_of_lists_in_another_order_is_read_by_its_places() -> None:
    array = pa.ListViewArray.from_arrays([2, 0, 1], [1, 2, 2], pa.array([7, 8, 9], pa.int32()))
    wanted = pa.field("c", pa.list_(pa.field("element", pa.int64())), metadata={"PARQUET:field_id": "1"})
    assert Projection("a file", None, {}, {}).project(array, wanted).to_pylist() == [[9], [7, 8], [8, 9]]
