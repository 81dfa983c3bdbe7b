"""A file format of its own on the rolling writer: what it is handed, and when its files end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.kit.data_file import ClosedFile
from laketier.kit.rolling import RollingWriter
from laketier.kit.rolling_settings import RollingSettings
from laketier.spi import IncompatibleData

SCHEMA = pa.schema([("id", pa.int64()), ("key", pa.string())])


class Lines:
    """A file of one line for each row, and one that says how many there were."""

    def __init__(self, stream: pa.NativeFile, schema: pa.Schema) -> None:
        self.stream, self.schema, self.blocks = stream, schema, list[int]()

    def write(self, table: pa.Table) -> None:
        assert table.schema.equals(self.schema)
        self.blocks.append(table.num_rows)
        self.stream.write("".join(f"{value}\n" for value in table["id"].to_pylist()).encode())

    def tell(self) -> int:
        return int(self.stream.tell())

    def close(self) -> Any:
        self.stream.write(f"end {sum(self.blocks)}\n".encode())
        return self.blocks

    def abandon(self) -> None:
        self.blocks.clear()


class Clock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def rolling(
    tmp_path: Path, *, keyed: bool = False, block_rows: int = 100, clock: Clock | None = None, **settings: Any
) -> RollingWriter:
    def create(partition: tuple[Any, ...]) -> tuple[str, pa.NativeFile]:
        path = str(tmp_path / f"{len(list(tmp_path.iterdir()))}.lines")
        return path, pa.OSFile(path, "wb")

    return RollingWriter(
        SCHEMA,
        create,
        Lines,
        RollingSettings(**settings),
        block_rows=block_rows,
        block_bytes=1 << 20,
        keys=(lambda table: [table["key"]]) if keyed else None,
        **({} if clock is None else {"clock": clock}),
    )


def batch(start: int, count: int, key: str = "k") -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(start, start + count)), pa.array([key] * count)], schema=SCHEMA)


def ids(files: list[ClosedFile]) -> list[int]:
    return [int(line) for file in files for line in Path(file.path).read_text().splitlines()[:-1]]


def test_small_batches_are_handed_over_as_blocks(tmp_path: Path) -> None:
    writer = rolling(tmp_path)
    for start in range(0, 250, 10):
        writer.write(batch(start, 10))
    (file,) = writer.close()
    assert (file.footer, file.rows, ids([file])) == ([100, 100, 50], 250, list(range(250)))
    assert file.bytes == Path(file.path).stat().st_size
    assert Path(file.path).read_text().endswith("end 250\n")


def test_a_file_ends_at_its_rows_or_its_bytes(tmp_path: Path) -> None:
    writer = rolling(tmp_path, target_file_rows=40)
    writer.write(batch(0, 100))
    assert [file.rows for file in writer.close()] == [40, 40, 20]
    (tmp_path / "bytes").mkdir()
    writer = rolling(tmp_path / "bytes", block_rows=10, target_file_bytes=50)
    writer.write(batch(10, 80))
    files = writer.close()
    assert [file.rows for file in files] == [20, 20, 20, 20]
    assert ids(files) == list(range(10, 90))


def test_a_partition_has_its_own_file_and_the_least_used_one_ends_first(tmp_path: Path) -> None:
    writer = rolling(tmp_path, keyed=True, block_rows=2, max_open_files=2)
    for start, key in enumerate("aabbaacc"):
        writer.write(batch(start, 1, key))
    files = writer.close()
    assert [(file.partition, ids([file])) for file in files] == [
        (("b",), [2, 3]),
        (("a",), [0, 1, 4, 5]),
        (("c",), [6, 7]),
    ]


def test_an_abandoned_file_has_no_end(tmp_path: Path) -> None:
    writer = rolling(tmp_path, block_rows=2)
    writer.write(batch(0, 5))
    writer.abandon()
    assert [Path(path).read_text() for path in writer.paths] == ["0\n1\n2\n3\n4\n"]


def test_rows_that_do_not_fit_are_refused_before_they_reach_a_file(tmp_path: Path) -> None:
    writer = rolling(tmp_path)
    with pytest.raises(IncompatibleData):
        writer.write(pa.record_batch({"id": [1], "other": ["x"]}))
    assert writer.paths == []


def test_a_file_ends_when_its_first_row_is_old(tmp_path: Path) -> None:
    clock = Clock()
    writer = rolling(tmp_path, clock=clock, target_file_seconds=10)
    for start in range(0, 50, 5):
        writer.write(batch(start, 5))
        clock.now += 4
    files = writer.close()
    # Rows of the seconds 0, 4 and 8; of 12, 16 and 20; and so on. Most of them were never in a file before it ended.
    assert [file.rows for file in files] == [15, 15, 15, 5]
    assert ids(files) == list(range(50))


def test_a_file_ends_when_no_row_comes_for_it(tmp_path: Path) -> None:
    clock = Clock()
    writer = rolling(tmp_path, keyed=True, block_rows=1, clock=clock, idle_file_seconds=10)
    writer.write(batch(0, 5, "rare"))
    for start in range(5, 50, 5):
        writer.write(batch(start, 5, "often"))
        clock.now += 4
    writer.write(batch(50, 5, "rare"))
    files = writer.close()
    assert [(file.partition, file.rows) for file in files] == [(("rare",), 5), (("often",), 45), (("rare",), 5)]
    assert sorted(ids(files)) == list(range(55))


def test_rows_that_are_not_split_yet_grow_old_too(tmp_path: Path) -> None:
    clock = Clock()
    writer = rolling(tmp_path, keyed=True, clock=clock, target_file_seconds=10)
    writer.write(batch(0, 5))
    clock.now += 11
    writer.write(batch(5, 5))
    clock.now += 11
    writer.write(batch(10, 5))
    files = writer.close()
    assert [file.rows for file in files] == [5, 5, 5]
    assert ids(files) == list(range(15))


def test_a_file_that_ended_by_its_size_gives_its_age_to_none(tmp_path: Path) -> None:
    clock = Clock()
    writer = rolling(tmp_path, block_rows=10, clock=clock, target_file_seconds=10, target_file_rows=10)
    writer.write(batch(0, 10))
    clock.now += 9
    writer.write(batch(10, 5))
    clock.now += 9
    writer.write(batch(15, 5))
    assert [file.rows for file in writer.close()] == [10, 10]


def test_memory_of_all_partitions_is_bounded_together(tmp_path: Path) -> None:
    """A few rows of a rare partition wait for more, and the rest of their batch is written and gone."""
    pool, most = pa.default_memory_pool(), 8 << 20
    writer = rolling(tmp_path, keyed=True, block_rows=1 << 20, buffer_bytes=most)
    before = peak = pool.bytes_allocated()
    keys = ["often" * 100 if row % 500 else f"rare {row}" for row in range(2_000)]
    for number in range(40):
        ids = range(number * 2_000, (number + 1) * 2_000)
        writer.write(pa.record_batch([pa.array(ids), pa.array(keys)], schema=SCHEMA))
        peak = max(peak, pool.bytes_allocated())
    writer.abandon()
    assert peak - before < 1.5 * most, f"{(peak - before) / most:.1f} times buffer-bytes was in memory"
