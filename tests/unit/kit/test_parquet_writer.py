from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.kit.parquet import ClosedFile, Compression, ParquetSettings, RollingParquetWriter
from laketier.spi import ConfigError, IncompatibleData

SCHEMA = pa.schema([("id", pa.int64()), ("key", pa.string())])


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.closed: list[str] = []

    def create(self, partition: tuple[Any, ...]) -> tuple[str, pa.NativeFile]:
        path = str(self.path / f"{uuid.uuid4().hex}.parquet")
        return path, pa.OSFile(path, "wb")

    def writer(self, *, keyed: bool = False, **settings: Any) -> RollingParquetWriter:
        return RollingParquetWriter(
            SCHEMA,
            self.create,
            ParquetSettings(**settings),
            keys=(lambda table: [table["key"]]) if keyed else None,
            on_closed=self.closed.append,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def batch(start: int, count: int, key: str = "k") -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(start, start + count)), pa.array([key] * count)], schema=SCHEMA)


def ids(files: list[ClosedFile]) -> list[int]:
    return [value for file in files for value in pq.read_table(file.path, columns=["id"])["id"].to_pylist()]


def test_nothing_written_makes_no_file(folder: Folder) -> None:
    writer = folder.writer()
    writer.write(batch(0, 0))
    assert writer.close() == []
    assert writer.paths == []


def test_tiny_batches_become_one_row_group(folder: Folder) -> None:
    writer = folder.writer()
    for start in range(0, 1000, 7):
        writer.write(batch(start, min(7, 1000 - start)))
    (file,) = writer.close()
    assert ids([file]) == list(range(1000))
    assert file.rows == 1000
    assert file.bytes == Path(file.path).stat().st_size
    assert (file.footer.num_rows, file.footer.num_row_groups) == (1000, 1)
    assert folder.closed == [file.path]


def test_a_huge_batch_is_cut_by_rows(folder: Folder) -> None:
    writer = folder.writer(target_file_rows=300, row_group_rows=100)
    writer.write(batch(0, 1000))
    files = writer.close()
    assert [file.rows for file in files] == [300, 300, 300, 100]
    assert ids(files) == list(range(1000))
    assert all(group <= 100 for file in files for group in _groups(file))


def test_files_are_cut_by_bytes(folder: Folder) -> None:
    writer = folder.writer(target_file_bytes=20_000, row_group_rows=1000)
    for start in range(0, 20_000, 500):
        text = pa.array([uuid.uuid4().hex for _ in range(500)])
        writer.write(pa.record_batch([pa.array(range(start, start + 500)), text], schema=SCHEMA))
    files = writer.close()
    assert len(files) > 5
    assert ids(files) == list(range(20_000))


def test_each_partition_has_its_own_files(folder: Folder) -> None:
    writer = folder.writer(keyed=True, max_open_files=2, row_group_rows=10)
    for start in range(0, 120, 3):
        writer.write(batch(start, 3, key="abcd"[start // 3 % 4]))
    files = writer.close()
    assert sorted(ids(files)) == list(range(120))
    assert {file.partition for file in files} == {("a",), ("b",), ("c",), ("d",)}
    for file in files:
        assert pq.read_table(file.path)["key"].unique().to_pylist() == list(file.partition)


def test_memory_is_bounded_over_all_partitions(folder: Folder) -> None:
    writer = folder.writer(keyed=True, buffer_bytes=1, row_group_rows=8)
    for start in range(0, 64, 8):
        writer.write(batch(start, 8, key=str(start)))
        assert writer._buffered == 0
    assert sorted(ids(writer.close())) == list(range(64))


def test_columns_may_be_left_out_of_the_files(folder: Folder) -> None:
    writer = RollingParquetWriter(
        SCHEMA,
        folder.create,
        ParquetSettings(),
        keys=lambda table: [table["key"]],
        file_schema=pa.schema([("id", pa.int64())]),
    )
    writer.write(batch(0, 3))
    (file,) = writer.close()
    assert pq.read_schema(file.path).names == ["id"]
    assert file.partition == ("k",)


def test_what_was_created_is_known_for_the_abort(folder: Folder) -> None:
    writer = folder.writer(target_file_rows=10, row_group_rows=10)
    writer.write(batch(0, 25))
    with pytest.raises(IncompatibleData):
        writer.write(pa.record_batch({"other": [1]}))
    writer.abandon()
    assert sorted(writer.paths) == sorted(str(path) for path in folder.path.iterdir())


def test_every_type_is_written_as_it_is(folder: Folder) -> None:
    """The encodings are chosen by type: each must be one that the type has."""
    table = pa.table(
        {
            "b": [True, None],
            "i": pa.array([1, None], pa.int8()),
            "u": pa.array([1, None], pa.uint64()),
            "f": pa.array([1.5, None], pa.float32()),
            "h": pa.array([1.5, None], pa.float16()),
            "d": pa.array([1, None], pa.decimal128(20, 3)),
            "t": pa.array([1, None], pa.timestamp("us", "UTC")),
            "day": pa.array([1, None], pa.date32()),
            "time": pa.array([1, None], pa.time64("us")),
            "s": ["x", None],
            "raw": [b"x", None],
            "fixed": pa.array([b"abc", None], pa.binary(3)),
            "list": [[1, None], None],
            "struct": [{"a": 1, "b": {"c": "x"}}, None],
            "map": pa.array([[("k", [1])], None], pa.map_(pa.string(), pa.list_(pa.int32()))),
            "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
        }
    )
    writer = RollingParquetWriter(table.schema, folder.create, ParquetSettings())
    for rows in table.to_batches():
        writer.write(rows)
    (file,) = writer.close()
    assert pq.read_table(file.path).equals(table)


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.bool_(), pa.string()], ids=str)
def test_a_column_named_like_a_path(folder: Folder, kind: pa.DataType) -> None:
    """Parquet tells columns by their paths: here two have one, and neither type suits the other's encoding."""
    other = pa.string() if kind != pa.string() else pa.int64()
    values = {pa.string(): "x", pa.int64(): 1, pa.float64(): 1.5, pa.bool_(): True}
    columns = {"s": pa.array([{"a": values[other]}], pa.struct([("a", other)])), "s.a": pa.array([values[kind]], kind)}
    table = pa.table(columns)
    writer = RollingParquetWriter(table.schema, folder.create, ParquetSettings())
    for rows in table.to_batches():
        writer.write(rows)
    (file,) = writer.close()
    assert pq.ParquetFile(file.path).read().equals(table)


def _groups(file: ClosedFile) -> list[int]:
    return [file.footer.row_group(i).num_rows for i in range(file.footer.num_row_groups)]


@pytest.mark.parametrize(
    ("codec", "level", "why"),
    [
        ("zstd", 2**63 - 1, "levels are -131072 to 22"),
        ("gzip", 10, "levels are 1 to 9"),
        ("lz4", 2**40, "levels are 1 to 12"),
        ("snappy", 1, "that codec has no levels"),
        ("none", 0, "that codec has no levels"),
    ],
)
def test_a_level_that_the_codec_does_not_have_is_refused(codec: str, level: int, why: str) -> None:
    settings = ParquetSettings(compression=Compression(codec), compression_level=level)
    for ask in (settings.check_level, lambda: settings.arguments(pa.schema([]))):
        with pytest.raises(ConfigError, match=f"compression-level is {level}, and the codec is {codec}, .*{why}"):
            ask()


@pytest.mark.parametrize(("codec", "level"), [("zstd", 22), ("zstd", -5), ("gzip", 9), ("lz4", 12), ("snappy", None)])
def test_other_levels_are_taken(codec: str, level: int | None) -> None:
    ParquetSettings(compression=Compression(codec), compression_level=level).check_level()
