"""What is newer than version 2: initial defaults are honoured, and what can't be read is refused by name."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    CorruptTable,
    FeatureNotSupported,
    LaketierError,
    PartitionField,
    ScanRequest,
    UnsupportedType,
)
from laketier_iceberg.connection import EMBEDDED_FILE
from laketier_verification.lakes import append, ids, lake_at, read_all, rows_of

SCHEMA = pa.schema([("id", pa.int64())])

DEFAULTS: list[tuple[str, Any, Any]] = [
    ("boolean", True, True), ("int", -5, -5), ("long", 2**40, 2**40), ("float", 0.5, 0.5), ("double", 1, 1.0),
    ("decimal(9, 2)", "-12.50", Decimal("-12.50")), ("date", "1969-07-20", datetime.date(1969, 7, 20)),
    ("time", "01:02:03.000004", datetime.time(1, 2, 3, 4)),
    ("timestamp", "2020-01-01T01:02:03.000004", datetime.datetime(2020, 1, 1, 1, 2, 3, 4)),
    ("timestamptz", "1969-01-01T01:02:03+00:00", datetime.datetime(1969, 1, 1, 1, 2, 3, 0, datetime.UTC)),
    ("string", "ü'{}", "ü'{}"), ("binary", "00ff", b"\x00\xff"), ("fixed[2]", "0aff", b"\x0a\xff"),
]  # fmt: skip


def _edit(table: Any, change: Callable[[dict[str, Any]], None]) -> None:
    """As an engine that knows version 3 leaves the table: the metadata file, edited."""
    path = Path(table.table().metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    document |= {"format-version": 3, "next-row-id": 0}
    for snapshot in document.get("snapshots", []):
        snapshot |= {"first-row-id": 0, "added-rows": 0}
    change(document)
    path.write_text(json.dumps(document))


def _add_columns(document: dict[str, Any], *fields: dict[str, Any]) -> None:
    [schema] = document["schemas"]
    document["schemas"] = [schema, {**schema, "schema-id": 1, "fields": [*schema["fields"], *fields]}]
    document |= {"current-schema-id": 1, "last-column-id": 100}


def _rows(table: Any, **request: Any) -> list[dict[str, Any]]:
    source = table.storage.source(table.info)
    plan = source.plan(ScanRequest(**request))
    return [row for split in plan.splits for batch in source.read(split, plan.schema) for row in batch.to_pylist()]


def test_initial_defaults_of_every_type_are_read(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 2))
    _edit(
        events,
        lambda document: _add_columns(
            document,
            *(
                {"id": 10 + index, "name": f"d{index}", "type": kind, "required": index % 2 == 0, "initial-default": v}
                for index, (kind, v, _) in enumerate(DEFAULTS)
            ),
        ),
    )
    expected = {f"d{index}": value for index, (_, _, value) in enumerate(DEFAULTS)}
    assert _rows(events) == [{"id": i, "s": f"v{i}", **expected} for i in (0, 1)]
    assert events.table().scan().to_arrow().to_pylist() == _rows(events)
    assert _rows(events, columns=("d3", "id")) == [{"d3": 0.5, "id": i} for i in (0, 1)]
    [split] = events.storage.source(events.info).plan(ScanRequest()).splits
    assert split.plain_parquet is None, "Spark's own reader knows no defaults"
    source = events.storage.source(events.info)
    log = events.storage.changes(events.info)
    changes = log.plan(1, log.versions().latest)
    assert [b.to_pylist() for s in changes.splits for b in source.read(s, changes.schema)] == [_rows(events)]


def test_defaults_inside_structs_are_read_and_null_structs_stay_null(make: Callable[..., Any]) -> None:
    table = make(pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int32())]))]))
    rows = [{"id": 1, "s": {"a": 1}}, {"id": 2, "s": None}]
    table.round(table.token(0), pa.RecordBatch.from_pylist(rows, schema=table.info.schema))

    def change(document: dict[str, Any]) -> None:
        [schema] = document["schemas"]
        inside = schema["fields"][1]["type"]["fields"]
        inside.append({"id": 10, "name": "b", "type": "int", "required": False, "initial-default": 7})

    _edit(table, change)
    assert _rows(table) == [{"id": 1, "s": {"a": 1, "b": 7}}, {"id": 2, "s": None}]


def test_no_column_is_added_to_a_table_of_version_3(events: Any) -> None:
    """pyiceberg finds out when it has made the file of metadata, which it left there."""
    events.round(events.token(0), events.batch(0, 2))
    _edit(events, lambda _: None)
    folder = Path(events.info.location) / "metadata"
    before = sorted(folder.iterdir())
    with pytest.raises(FeatureNotSupported, match="changing tables of version 3"):
        events.storage.catalog().alter_table(events.info.path, [AddColumn(pa.field("more", pa.int64()))])
    assert sorted(folder.iterdir()) == before


def test_a_required_column_that_a_file_lacks_is_refused(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 2))
    _edit(events, lambda d: _add_columns(d, {"id": 10, "name": "must", "type": "int", "required": True}))
    with pytest.raises(CorruptTable, match="no column 'must', which is required"):
        _rows(events)


def test_dates_that_became_timestamps_are_read_and_filtered(make: Callable[..., Any]) -> None:
    from laketier.spi import Leaf, Op
    from laketier.tables.scan import scan

    table = make(pa.schema([("id", pa.int64()), ("d", pa.date32())]))
    rows = [{"id": i, "d": datetime.date(2020, 1, i)} for i in (1, 2)]
    table.round(table.token(0), pa.RecordBatch.from_pylist(rows, schema=table.info.schema))

    def change(document: dict[str, Any]) -> None:
        document["schemas"][0]["fields"][1]["type"] = "timestamp"

    _edit(table, change)
    assert _rows(table) == [{"id": i, "d": datetime.datetime(2020, 1, i)} for i in (1, 2)]
    wanted = ScanRequest(filters=(Leaf("d", Op.GE, datetime.datetime(2020, 1, 2)),))
    _, batches = scan(table.storage.source(table.info), wanted)
    assert [row["id"] for batch in batches for row in batch.to_pylist()] == [2]


def test_a_filter_on_a_partition_is_left_to_the_reader_where_planning_went_without_filters(
    make: Callable[..., Any],
) -> None:
    from laketier.spi import Leaf, Op
    from laketier.tables.scan import scan

    table = make(pa.schema([("p", pa.string()), ("d", pa.date32())]), partition_by=(PartitionField("p"),))
    rows = [{"p": p, "d": datetime.date(2020, 1, day)} for day, p in ((1, "a"), (2, "b"))]
    table.round(table.token(0), pa.RecordBatch.from_pylist(rows, schema=table.info.schema))
    _edit(table, lambda document: document["schemas"][0]["fields"][1].update(type="timestamp"))
    only_a = Leaf("p", Op.EQ, "a")
    source = table.storage.source(table.info)
    assert source.plan(ScanRequest(filters=(only_a,))).remaining == ()
    both = ScanRequest(filters=(only_a, Leaf("d", Op.GE, datetime.datetime(2019, 1, 1))))
    assert source.plan(both).remaining == both.filters
    _, batches = scan(source, both)
    assert [row["p"] for batch in batches for row in batch.to_pylist()] == ["a"]


def _field(kind: Any, **rest: Any) -> Callable[[dict[str, Any]], None]:
    return lambda d: _add_columns(d, {"id": 10, "name": "odd", "type": kind, "required": False, **rest})


def _set(**parts: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update(parts)


def _nested(kind: str) -> dict[str, Any]:
    return {"type": "list", "element-id": 11, "element": kind, "element-required": False}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (_field("variant"), UnsupportedType, "db.events.*column 'odd' is of Iceberg's type variant"),
        (_field(_nested("variant")), UnsupportedType, "column 'odd.element' is of Iceberg's type variant"),
        (_field("geometry"), UnsupportedType, "db.events.*column 'odd' is of Iceberg's type geometry"),
        (_field("unknown"), UnsupportedType, "column 'odd' is of Iceberg's type unknown"),
        (_field("timestamp_ns"), UnsupportedType, "column 'odd' is of Iceberg's type timestamp_ns"),
        (_field("uuid"), UnsupportedType, "column 'odd' is of Iceberg's type uuid"),
        (_field(_nested("int"), **{"initial-default": [1]}), FeatureNotSupported, "initial default.*'odd' has .1."),
        (_field("decimal(3, 1)", **{"initial-default": "x"}), FeatureNotSupported, "initial default.*'odd' has \"x\""),
        (_field("int", **{"initial-default": "x"}), CorruptTable, "'x', which files without column 'odd' have"),
        (_set(**{"format-version": 4}), FeatureNotSupported, "tables of version 4"),
        (
            _set(**{"partition-specs": [{"spec-id": 0, "fields": [{"source-ids": [1, 2], "name": "p"}]}]}),
            FeatureNotSupported,
            "partitions by several columns.*'p'",
        ),
        (_set(schemas=7), CorruptTable, "metadata can't be read"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_before_reading_by_name(
    events: Any, change: Callable[[dict[str, Any]], None], error: type[LaketierError], message: str
) -> None:
    events.round(events.token(0), events.batch(0, 2))
    source = events.storage.source(events.info)
    _edit(events, change)
    with pytest.raises(error, match=message) as caught:
        source.plan(ScanRequest())
    assert "events" in str(caught.value)


def test_a_warehouse_that_was_moved_goes_on_once_its_former_place_is_a_link(tmp_path: Path) -> None:
    """The metadata names files by whole paths, and the error spoke of a file to restore."""
    old, new = tmp_path / "old", tmp_path / "new"
    append(lake_at(old, "iceberg"), rows_of(1, 2))
    old.rename(new)
    with pytest.raises(CorruptTable, match=r"metadata can't be read.* If the warehouse was moved.*former place a link"):
        read_all(lake_at(new, "iceberg"))
    old.symlink_to(new)
    append(lake_at(new, "iceberg"), rows_of(3))
    assert ids(lake_at(new, "iceberg")) == [1, 2, 3]


def test_tables_of_version_3_are_not_written(events: Any) -> None:
    _edit(events, lambda document: None)
    with pytest.raises(FeatureNotSupported, match="writing tables of version 3"):
        events.storage.tiering_factory(events.info)


def test_variants_are_refused_and_never_structs_of_two_binaries(events: Any) -> None:
    from laketier_iceberg.types import check_types

    marked = pa.field("metadata", pa.binary(), metadata={"variant": "true"})
    spark = pa.struct([pa.field("value", pa.binary()), marked])
    for kind in (spark, pa.list_(spark), pa.struct([("v", spark)])):
        with pytest.raises(UnsupportedType, match=r"col.*a variant .* can't be stored as one"):
            check_types(pa.schema([("col", kind)]))
    check_types(pa.schema([("col", pa.struct([("value", pa.binary()), ("metadata", pa.binary())]))]))


def test_status_of_a_table_of_version_1_that_pyiceberg_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It can be read, and not written: nobody who looks at it is told of rounds."""
    from pyiceberg.catalog.sql import SqlCatalog

    from laketier.cli.app import main

    catalog = SqlCatalog("laketier", uri=f"sqlite:///{tmp_path / EMBEDDED_FILE}", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.old", SCHEMA, properties={"format-version": "1", "laketier.note": "x"})
    table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    assert catalog.load_table("db.old").metadata.format_version == 1
    snapshot = table.current_snapshot()
    assert snapshot is not None

    def told(command: str, *words: str) -> Any:
        lake = ["-f", "iceberg", "-w", str(tmp_path), "--json"]
        monkeypatch.setattr("sys.argv", ["laketier", command, "db.old", *lake, *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
        return json.loads(capsys.readouterr().out)

    found = told("status")
    assert (found["snapshot"], found["pipelines"], found["watermark"]) == (snapshot.snapshot_id, {}, None)
    assert "writing tables of version 1" in found["rounds refused"]
    assert told("status", "-s", "lake.pipeline=p")["watermark"] is None
    assert sorted(row["id"] for row in told("read")) == [1, 2]
    catalog.close()
