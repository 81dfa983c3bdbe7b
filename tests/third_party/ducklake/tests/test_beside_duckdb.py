"""Beside DuckDB without laketier: it reads what rounds wrote, and its own commits and clean-ups lose no watermark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from ducklake_lake.source import PAGE_ROWS

from laketier import spi
from laketier.registry import Lake, configure, open_lake
from laketier.tables import prepare_table
from laketier.tiering import TieringRound, write_task

BATCH = pa.record_batch({"id": [1, 2, 3], "name": ["a", None, "c"]})


def lake_in(folder: Path) -> Lake:
    keys = {"lake.format": "ducklake", "lake.warehouse": str(folder), "lake.table": "db.t"}
    return open_lake(configure(keys))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_in(tmp_path / "w")


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Callable[[str], list[tuple[object, ...]]]]:
    """DuckDB as its manual opens a DuckLake, with its signatures checked."""
    with duckdb.connect() as connection:
        for name in ("sqlite_scanner", "ducklake"):
            folder = resources.files(f"duckdb_extension_{name}") / "extensions" / f"v{duckdb.__version__}"
            connection.execute(f"LOAD '{folder / name}.duckdb_extension'")

        def run(sql: str) -> list[tuple[object, ...]]:
            if not connection.execute("SELECT 1 FROM duckdb_databases() WHERE database_name = 'lake'").fetchall():
                connection.execute(f"ATTACH 'ducklake:sqlite:{tmp_path}/w/lake.sqlite' AS lake")
            return connection.execute(sql).fetchall()

        yield run


def rows_of(lake: Lake) -> list[int]:
    source = lake.source(lake.load_table())
    plan = source.plan(spi.ScanRequest())
    return sorted(
        row["id"] for split in plan.splits for batch in source.read(split, plan.schema) for row in batch.to_pylist()
    )


def round_of(lake: Lake, epoch: int) -> str:
    factory = lake.storage.tiering_factory(prepare_table(lake, BATCH.schema))
    tiering = TieringRound(factory, token=spi.Token(pipeline="p", run="r", epoch=epoch))
    return tiering.commit_messages([write_task(factory, [BATCH])]).outcome.value


def test_duckdb_reads_and_keeps_what_rounds_wrote(lake: Lake, other: Callable[[str], list[tuple[object, ...]]]) -> None:
    assert [round_of(lake, epoch) for epoch in range(3)] == ["published"] * 3
    assert other("SELECT count(*), count(name), sum(id) FROM lake.db.t") == [(9, 6, 18)]
    # By the statistics that the library keeps.
    assert other("SELECT count(*) FROM lake.db.t WHERE id >= 3") == [(3,)]

    other("CALL ducklake_merge_adjacent_files('lake')")
    other("INSERT INTO lake.db.t VALUES (100, 'small, so it lies in the catalog')")
    other("DELETE FROM lake.db.t WHERE id = 2")
    other("CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)")
    other("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    assert rows_of(lake) == [1, 1, 1, 3, 3, 3, 100]
    assert round_of(lake, 2) == "already there"
    assert round_of(lake, 3) == "published"
    assert other("SELECT count(*) FROM lake.db.t") == [(10,)]


def test_a_commit_to_another_table_is_a_conflict_that_keeps_the_staged_files(lake: Lake) -> None:
    factory = lake.storage.tiering_factory(prepare_table(lake, BATCH.schema))
    with factory.create_writer(spi.WriterInitContext(spi.new_attempt_id())) as writer:
        writer.write(BATCH)
        result = writer.complete()
    committer = factory.create_committer(spi.CommitterInitContext(spi.new_attempt_id()))
    state = committer.open()
    lake.storage.catalog().create_table(spi.TablePath("db", "other"), spi.TableDescriptor(BATCH.schema))
    with pytest.raises(spi.Conflict):
        committer.publish(state, [result], None)
    assert committer.publish(committer.open(), [result], None).rows == 3
    assert rows_of(lake) == [1, 2, 3]


def test_a_library_that_fails_before_its_commit_has_not_begun(lake: Lake) -> None:
    """It says so of a file that is no Parquet."""
    factory = lake.storage.tiering_factory(prepare_table(lake, BATCH.schema))
    with factory.create_writer(spi.WriterInitContext(spi.new_attempt_id())) as writer:
        writer.write(BATCH)
        result = writer.complete()
    (file,) = result.files
    staged = Path(lake.load_table().location, file.path)
    staged.write_bytes(bytes(staged.stat().st_size))
    committer = factory.create_committer(spi.CommitterInitContext(spi.new_attempt_id()))
    with pytest.raises(spi.NotBegun, match="nothing was published"):
        committer.publish(committer.open(), [result], None)
    assert rows_of(lake) == []


CHECKPOINT = (
    "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone())"
)


def test_no_transaction_is_open_while_rows_are_handed_over(lake: Lake) -> None:
    """One would keep SQLite's log from being emptied, for as long as somebody thinks about a batch."""
    batch = pa.record_batch({"id": range(2 * PAGE_ROWS + 1)})
    factory = lake.storage.tiering_factory(prepare_table(lake, batch.schema))
    for epoch in range(2):
        tiering = TieringRound(factory, token=spi.Token(pipeline="p", run="r", epoch=epoch))
        tiering.commit_messages([write_task(factory, [batch])])
    source = lake.source(lake.load_table())
    plan = source.plan(spi.ScanRequest())
    rows = source.read(plan.splits[0], plan.schema)
    ids = next(rows).column("id").to_pylist()
    # Another process, as to close the file in this one ends the locks of it.
    command = [sys.executable, "-c", CHECKPOINT, str(source.lake.file)]
    lake.storage.catalog().create_table(spi.TablePath("db", "other"), spi.TableDescriptor(BATCH.schema))
    busy, *_ = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout.split()
    assert busy == "0"
    ids += [number for more in rows for number in more.column("id").to_pylist()]
    assert sorted(ids) == batch.column("id").to_pylist()


def test_numbers_of_rows_may_have_gaps(lake: Lake, other: Callable[[str], list[tuple[object, ...]]]) -> None:
    """Rows keep their numbers where others were deleted, and where a merge put them in one file."""
    batch = pa.record_batch({"id": range(10 * PAGE_ROWS)})
    factory = lake.storage.tiering_factory(prepare_table(lake, batch.schema))
    for epoch in range(2):
        tiering = TieringRound(factory, token=spi.Token(pipeline="p", run="r", epoch=epoch))
        tiering.commit_messages([write_task(factory, [batch])])
    last = 10 * PAGE_ROWS - 1
    other(f"DELETE FROM lake.db.t WHERE id BETWEEN 2 AND {last - 1}")
    assert rows_of(lake) == [0, 0, 1, 1, last, last]
    other("CALL ducklake_rewrite_data_files('lake')")
    other("CALL ducklake_merge_adjacent_files('lake')")
    assert rows_of(lake) == [0, 0, 1, 1, last, last]


def test_a_lake_that_was_moved_is_not_the_copy_in_its_old_place(lake: Lake, tmp_path: Path) -> None:
    """Its file has the number that it had, and this process still has it attached by the old path."""
    round_of(lake, 0)
    (tmp_path / "w").rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / "w")
    path = spi.TablePath("db", "later")
    lake_in(tmp_path / "moved").storage.catalog().create_table(path, spi.TableDescriptor(BATCH.schema))
    tables = {name: lake_in(tmp_path / name).storage.catalog().list_tables() for name in ("w", "moved")}
    assert (path in tables["w"], path in tables["moved"]) == (False, True)


def test_no_new_file_has_the_number_of_a_lake_that_is_attached(lake: Lake, tmp_path: Path) -> None:
    """It is gone, and a new lake would be taken for it. Most file systems give the number to the next new file."""
    (tmp_path / "control").touch()
    gone = os.stat(tmp_path / "control").st_ino
    (tmp_path / "control").unlink()
    (tmp_path / "next").touch()
    if os.stat(tmp_path / "next").st_ino != gone:
        pytest.skip("this file system gives the number of a file that is gone to no other")
    round_of(lake, 0)
    file = tmp_path / "w" / "lake.sqlite"
    number = os.stat(file).st_ino
    file.unlink()
    numbers = set()
    for name in map(str, range(20)):
        (tmp_path / "w" / name).touch()
        numbers.add(os.stat(tmp_path / "w" / name).st_ino)
    assert number not in numbers
