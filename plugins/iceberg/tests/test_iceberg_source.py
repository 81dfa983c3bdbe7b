"""Reading: projection, filters, limits, time travel, evolved schemas, delete files, object stores."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.spi import (
    AddColumn,
    And,
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    Leaf,
    Not,
    Op,
    Or,
    PartitionField,
    Predicate,
    RenameColumn,
    ScanRequest,
    SnapshotNotFound,
    WidenColumn,
    WriteMode,
    pack,
    unpack,
)
from laketier.tables.scan import scan
from laketier_iceberg.filters import renamed
from laketier_iceberg.foreign_deletes import add_deletes
from laketier_iceberg.harness import IcebergHarness


def _plan(table: Any, **request: Any) -> Any:
    return table.storage.source(table.info).plan(ScanRequest(**request))


def test_an_empty_table_gives_no_splits(events: Any) -> None:
    plan = _plan(events)
    assert (plan.snapshot_id, plan.splits) == (None, ())
    assert plan.schema.equals(events.info.schema, check_metadata=True)


def test_projection_order_and_no_columns_at_all(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 10))
    assert events.read(columns=("s", "id")).column_names == ["s", "id"]
    source = events.storage.source(events.info)
    plan = source.plan(ScanRequest(columns=()))
    assert sum(batch.num_rows for split in plan.splits for batch in source.read(split, plan.schema)) == 10
    with pytest.raises(ConfigError, match="no columns"):
        _plan(events, columns=("nope",))
    with pytest.raises(ConfigError, match="no columns"):
        _plan(events, filters=(Leaf("nope", Op.EQ, 1),))


def test_a_split_crosses_processes_by_its_serializer_and_a_source_by_pickle(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 10))
    source = pickle.loads(pickle.dumps(events.storage.source(events.info)))  # noqa: S301 - as Spark sends it
    plan = source.plan(ScanRequest(limit=3))
    split = unpack(source.split_serializer, pack(source.split_serializer, plan.splits[0]))
    assert [b.num_rows for b in source.read(split, plan.schema)] == [3]


def test_only_filters_that_identity_partitions_decide_are_taken(make: Any) -> None:
    table = make(partition_by=(PartitionField("s"),))
    table.round(table.token(0), table.batch(0, 30))
    taken, left = Leaf("s", Op.EQ, "v1"), Leaf("id", Op.LT, 6)
    plan = _plan(table, filters=(taken, left))
    assert plan.remaining == (left,)
    assert [dict(split.partition) for split in plan.splits] == [{"s": "v1"}]
    for vague in (Leaf("s", Op.NE, "v1"), And((taken, left)), Leaf("s", Op.EQ, 1)):
        assert _plan(table, filters=(vague,)).remaining == (vague,)
    assert table.read(filters=(taken,))["id"].to_pylist() == list(range(1, 30, 3))


def test_a_null_partition_is_not_unequal_to_anything(make: Any) -> None:
    table = make(partition_by=(PartitionField("s"),))
    rows = pa.RecordBatch.from_pydict({"id": [1, 2, 3], "s": ["a", None, "b"]})
    table.round(table.token(0), rows)
    assert table.read(filters=(Leaf("s", Op.IS_NULL),))["id"].to_pylist() == [2]
    assert table.read(filters=(Leaf("s", Op.IN, ("a", "x")),))["id"].to_pylist() == [1]


def test_a_limit_plans_fewer_splits_and_exactly_its_rows(events: Any) -> None:
    for epoch in range(3):
        events.round(events.token(epoch), events.batch(epoch * 10, epoch * 10 + 10))
    plan = _plan(events, limit=15)
    assert [split.limit for split in plan.splits] == [None, 5]
    assert plan.splits[1].plain_parquet is None
    assert events.read(limit=15).num_rows == 15
    assert events.read(limit=0).num_rows == 0
    filtered = _plan(events, limit=15, filters=(Leaf("id", Op.GE, 5),))
    assert [split.limit for split in filtered.splits] == [None] * 3


def test_time_travel_by_snapshot_and_by_moment_with_the_schema_of_then(events: Any) -> None:
    first = events.round(events.token(0), events.batch(0, 10)).snapshot_id
    then = events.table().current_snapshot().timestamp_ms
    time.sleep(0.002)  # snapshots are told apart by the millisecond
    events.storage.catalog().alter_table(events.info.path, [AddColumn(pa.field("new", pa.int32()))])
    events.info = events.storage.catalog().load_table(events.info.path)
    events.factory = events.storage.tiering_factory(events.info)
    events.round(events.token(1), events.batch(10, 20), mode=WriteMode.OVERWRITE)
    assert events.read(snapshot_id=first)["id"].to_pylist() == list(range(10))
    assert events.read(as_of=then)["id"].to_pylist() == list(range(10))
    assert events.read(as_of=then).column_names == ["id", "s"]
    assert events.read().column_names == ["id", "s", "new"]
    assert events.read(as_of=then + 10**9)["id"].to_pylist() == list(range(10, 20))
    for request in ({"snapshot_id": 42}, {"as_of": 1000}):
        with pytest.raises(SnapshotNotFound):
            _plan(events, **request)
    with pytest.raises(ConfigError):
        _plan(events, snapshot_id=first, as_of=then)


def test_the_newest_snapshot_by_its_id_has_the_columns_of_today(events: Any) -> None:
    """A union read asks for it so, after a column came or was renamed and nobody has written since."""
    newest = events.round(events.token(0), events.batch(0, 2)).snapshot_id
    with events.table().update_schema() as update:
        update.rename_column("s", "t")
    columns = ("t", "id")
    assert events.read(snapshot_id=newest, columns=columns).to_pylist() == [{"t": "v0", "id": 0}, {"t": "v1", "id": 1}]
    assert events.read(snapshot_id=newest, filters=(Leaf("t", Op.EQ, "v1"),)).column_names == ["id", "t"]
    events.table().append(pa.table({"id": [2], "t": ["v2"]}))
    assert events.read(snapshot_id=newest).column_names == ["id", "s"]


def test_filters_on_an_older_snapshot_mean_the_columns_of_then(make: Any) -> None:
    """For pyiceberg a name is that of today's column, and skips files by what these say of another one."""
    columns = pa.schema([(name, pa.int64()) for name in ("id", "a", "b", "c")])
    table = make(columns)
    first = table.round(None, pa.RecordBatch.from_pylist([{"id": 1, "a": 1, "b": 100, "c": 5}], columns)).snapshot_id
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        with table.table().update_schema() as update:
            update.rename_column(old, new)
    with table.table().update_schema() as update:
        update.delete_column("c")
    table.table().append(pa.table({"id": [2], "b": [7], "a": [7]}))

    def found(predicate: Predicate) -> list[int]:
        source = table.storage.source(table.info)
        _, batches = scan(source, ScanRequest(snapshot_id=first, filters=(predicate,)))
        return [row for batch in batches for row in batch["id"].to_pylist()]

    for name, value in (("a", 1), ("b", 100), ("c", 5)):
        for leaf in (Leaf(name, Op.EQ, value), Leaf(name, Op.IN, (value,)), Not(Leaf(name, Op.GT, value))):
            assert found(leaf) == [1], leaf
        assert found(Leaf(name, Op.EQ, 7)) == []
    assert found(And((Leaf("a", Op.EQ, 1), Or((Leaf("c", Op.EQ, 5), Leaf("b", Op.EQ, 7)))))) == [1]
    with pytest.raises(TypeError, match="not a predicate"):
        renamed("x", table.table().schema(), table.table().schema())  # type: ignore[arg-type]


def test_plain_parquet_is_what_duckdb_reads_alike_and_evolved_files_are_not(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 10))
    (split,) = _plan(events).splits
    assert duckdb.sql(f"SELECT count(*), sum(id) FROM '{split.plain_parquet}'").fetchall() == [(10, 45)]
    assert pq.read_schema(split.plain_parquet).names == ["id", "s"]
    events.storage.catalog().alter_table(events.info.path, [AddColumn(pa.field("new", pa.int32()))])
    (split,) = _plan(events).splits
    assert split.plain_parquet is None
    assert events.read()["new"].to_pylist() == [None] * 10


def test_renamed_dropped_readded_and_promoted_columns_are_found_by_id(make: Any) -> None:
    schema = pa.schema(
        [
            ("id", pa.int32()),
            ("f", pa.float32()),
            ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
            ("l", pa.list_(pa.struct([("x", pa.int32())]))),
            ("m", pa.map_(pa.string(), pa.struct([("y", pa.int32())]))),
            ("gone", pa.string()),
        ]
    )
    table = make(schema)
    row = {"id": 1, "f": 0.5, "st": {"a": 2, "b": "b"}, "l": [{"x": 3}, None], "m": [("k", {"y": 4})], "gone": "g"}
    null = dict.fromkeys(row)
    table.round(table.token(0), pa.RecordBatch.from_pylist([row, null, row], schema=schema))
    from pyiceberg.types import DoubleType, IntegerType, LongType, StringType

    with table.table().update_schema() as update:
        update.update_column("id", LongType()).update_column("f", DoubleType())
        update.rename_column("id", "key")
        update.rename_column("st.a", "renamed").add_column(("st", "new"), StringType())
        update.rename_column("l.x", "z").add_column(("m", "value", "n"), IntegerType())
        update.delete_column("gone")
    with table.table().update_schema() as update:
        update.add_column("gone", StringType())
    table.info = table.storage.catalog().load_table(table.info.path)
    assert all(split.plain_parquet is None for split in _plan(table).splits)
    read = table.read().to_pylist()
    assert read[0] == read[2]
    assert read[0] == {
        "key": 1,
        "f": 0.5,
        "st": {"renamed": 2, "b": "b", "new": None},
        "l": [{"z": 3}, None],
        "m": [("k", {"y": 4, "n": None})],
        "gone": None,
    }
    assert read[1] == dict.fromkeys(read[0])
    theirs = table.table().scan().to_arrow().to_pylist()
    # pyiceberg itself reads a null list with an evolved struct inside as an empty one.
    assert (read[0], read[2]) == (theirs[0], theirs[2])


def test_pyiceberg_reads_what_laketier_renamed_and_widened(make: Any) -> None:
    schema = pa.schema([("id", pa.int32()), ("f", pa.float32()), ("s", pa.string())])
    table = make(schema)
    table.round(table.token(0), pa.RecordBatch.from_pylist([{"id": 1, "f": 0.5, "s": "a"}], schema=schema))
    changes = [WidenColumn("id", pa.int64()), WidenColumn("f", pa.float64()), RenameColumn("s", "t")]
    table.info = table.storage.catalog().alter_table(table.info.path, changes)
    table.factory = table.storage.tiering_factory(table.info)
    wide = pa.schema([("id", pa.int64()), ("f", pa.float64()), ("t", pa.string())])
    table.round(table.token(1), pa.RecordBatch.from_pylist([{"id": 2**40, "f": 0.1, "t": "b"}], schema=wide))
    everything = [(1, 0.5, "a"), (2**40, 0.1, "b")]
    scan = table.table().scan().to_arrow().sort_by("id")
    assert [tuple(row.values()) for row in scan.to_pylist()] == everything
    assert [tuple(row.values()) for row in table.read().sort_by("id").to_pylist()] == everything
    assert table.table().scan(row_filter="id > 2147483648").to_arrow()["t"].to_pylist() == ["b"]


def test_files_that_pyiceberg_wrote_are_read(make: Any) -> None:
    table = make(partition_by=(PartitionField("s"),))
    table.table().append(pa.table({"id": [1, 2, 3], "s": ["a", "b", None]}))
    assert sorted(table.read()["id"].to_pylist()) == [1, 2, 3]
    table.table().delete("id = 2")
    assert sorted(table.read()["id"].to_pylist()) == [1, 3]


def test_a_missing_file_is_named(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 10))
    (split,) = _plan(events).splits
    Path(split.payload.path).unlink()
    with pytest.raises(CorruptTable, match="a file that the snapshot lists is missing"):
        events.read()


@pytest.mark.parametrize("kept", [0, 0.5])
def test_a_damaged_file_is_named(events: Any, kept: float) -> None:
    events.round(events.token(0), events.batch(0, 10))
    plan = _plan(events)
    file = Path(plan.splits[0].payload.path)
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * kept)])
    with pytest.raises(CorruptTable, match=f"{file.name}: a data file is damaged"):
        list(events.storage.source(events.info).read(plan.splits[0], plan.schema))


@pytest.mark.parametrize("name", ["snap-*.avro", "*-m0.avro"])
def test_a_damaged_manifest_is_named(events: Any, name: str) -> None:
    events.round(events.token(0), events.batch(0, 10))
    [path] = Path(events.info.location, "metadata").glob(name)
    whole = path.read_bytes()
    changes = events.storage.changes(events.info)
    maintenance = events.storage.maintenance(events.info)
    for damage in (
        b"",
        whole[: len(whole) // 2],
        b"x" * 100,
        b"[" * 100_000,
        whole[:-60] + b"\xff" * 40 + whole[-20:],
        None,
    ):
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage)
        for look in (_plan, lambda table: changes.plan(1, 2), lambda table: maintenance.orphans(1 << 50)):
            with pytest.raises(CorruptTable, match=f"{path.name}: a manifest (is missing|can't be read)"):
                look(events)


def test_positional_deletes_of_another_engine_are_applied(events: Any) -> None:
    from pyiceberg.manifest import DataFileContent, ManifestContent

    events.round(events.token(0), events.batch(0, 10))
    (split,) = _plan(events).splits
    path = split.payload.path
    deletes = {"file_path": [path, path, "another"], "pos": [0, 7, 3]}
    add_deletes(events.table(), DataFileContent.POSITION_DELETES, deletes)
    (split,) = _plan(events).splits
    loaded = events.table()
    listed = loaded.current_snapshot().manifests(loaded.io)
    [manifest] = [each for each in listed if each.content == ManifestContent.DELETES]
    with open(manifest.manifest_path, "rb") as file:
        assert fastavro.reader(file).metadata["content"] == "deletes", "the manifest says what its list says"
    assert split.plain_parquet is None
    assert split.rows is None
    assert [split.limit for split in _plan(events, limit=2).splits] == [None]
    assert events.read()["id"].to_pylist() == [1, 2, 3, 4, 5, 6, 8, 9]
    assert events.ids() == [1, 2, 3, 4, 5, 6, 8, 9]
    events.round(events.token(1), events.batch(0, 3), mode=WriteMode.OVERWRITE)
    assert events.ids() == [0, 1, 2]
    assert events.read()["id"].to_pylist() == [0, 1, 2]


def test_a_file_with_positional_deletes_is_replaced(events: Any) -> None:
    """Its deletes are about nothing then: they touch neither the rows that take its place nor those of other files."""
    from dataclasses import replace

    from pyiceberg.manifest import DataFileContent

    from laketier.tiering import TieringRound

    events.round(events.token(0), events.batch(0, 4))
    events.round(events.token(1), events.batch(4, 8))
    first, second = (split.payload.path for split in _plan(events).splits)
    deletes = {"file_path": [first, second], "pos": [0, 1]}
    add_deletes(events.table(), DataFileContent.POSITION_DELETES, deletes)
    [split] = [split for split in _plan(events).splits if split.files == (first,)]
    rows = list(events.storage.source(events.info).read(split, events.info.schema))
    kept = pa.Table.from_batches(rows)["id"].to_pylist()
    staged = replace(events.stage(events.batch(min(kept), max(kept) + 1)), replaced=split.files)
    tiering = TieringRound(events.factory, token=events.token(2), mode=WriteMode.UPSERT)
    tiering.begin()
    tiering.commit([staged])
    expected = sorted({*range(8)} - ({0, 5} if 1 in kept else {1, 4}))
    assert sorted(events.read()["id"].to_pylist()) == events.ids() == expected


def test_the_deletes_of_the_suite(make: Any, warehouse: Path) -> None:
    """Its locations may be URIs, and it does not pass over an id that no row has."""
    events = make(properties={"write.data.path": f"file://{warehouse}/db/events/data"})
    events.round(events.token(0), events.batch(0, 10))
    harness = IcebergHarness()
    harness.delete_rows(events.storage, events.info, [3, 5])
    assert events.ids() == events.read()["id"].to_pylist() == [0, 1, 2, 4, 6, 7, 8, 9]
    with pytest.raises(AssertionError, match="0 rows have one of 1 ids"):
        harness.delete_rows(events.storage, events.info, [11])


def test_equality_deletes_are_refused(events: Any) -> None:
    from pyiceberg.manifest import DataFileContent

    events.round(events.token(0), events.batch(0, 10))
    add_deletes(events.table(), DataFileContent.EQUALITY_DELETES, {"id": [3]}, [1])
    with pytest.raises(FeatureNotSupported, match="equality deletes"):
        _plan(events)


def test_files_are_cut_by_rows_and_by_bytes(make: Any) -> None:
    from laketier_iceberg.options import IcebergOptions

    by_rows = make(name="rows", options=IcebergOptions(target_file_rows=40, row_group_rows=16))
    result = by_rows.stage(*[by_rows.batch(i * 10, i * 10 + 10) for i in range(10)])
    assert [file.rows for file in result.files] == [40, 40, 20]
    by_bytes = make(
        name="bytes", properties={"write.target-file-size-bytes": "1000"}, options=IcebergOptions(row_group_rows=100)
    )
    assert len(by_bytes.stage(by_bytes.batch(0, 1000)).files) > 1
    writer = by_rows.factory.create_writer(_context())
    writer.write(by_rows.batch(0, 100))
    folder = Path(by_rows.info.location, "data")
    assert len(list(folder.iterdir())) > 3
    writer.abort()
    writer.abort()
    assert len(list(folder.iterdir())) == 3


def _context() -> Any:
    from laketier.spi import WriterInitContext, new_attempt_id

    return WriterInitContext(new_attempt_id())


@pytest.mark.parametrize("codec", ["snappy", "gzip", "brotli"])
def test_the_tables_own_codec_is_used_where_all_readers_know_it(make: Any, codec: str) -> None:
    table = make(properties={"write.parquet.compression-codec": codec})
    (file,) = table.stage(table.batch(0, 10)).files
    footer = pq.read_metadata(f"{table.info.location}/{file.path}")
    assert footer.row_group(0).column(0).compression == {"brotli": "ZSTD"}.get(codec, codec.upper())
