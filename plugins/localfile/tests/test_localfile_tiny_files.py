"""A folder of tiny files is adopted, folded by the commits that follow, and what was folded expires."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import SCHEMA, Table

from depth import sizes
from laketier_localfile.layout import SUPERSEDED


@pytest.mark.timeout(1800)
@sizes("files", 300, 10_000)
def test_tiny_files_become_few(tmp_path: Path, capsys: Any, files: int) -> None:
    table: Any = Table(tmp_path / "lake")
    table.location.mkdir(parents=True)
    for number in range(files):
        rows = pa.record_batch([[number], [f"r{number % 4}"]], schema=SCHEMA)
        pq.write_table(pa.Table.from_batches([rows]), table.location / f"click-{number:05}.parquet")
    cpu = [time.process_time()]
    made = table.storage.adoption().adopt(table.path)
    assert (made.files, made.rows) == (files, files)
    cpu.append(time.process_time())
    assert table.read_ids() == list(range(files))
    cpu.append(time.process_time())
    commits = 0
    while len(table.files()) > 60:
        table.round(commits, [{"id": files + commits, "region": "new"}])
        commits += 1
    cpu.append(time.process_time())
    expected = list(range(files + commits))
    assert table.read_ids() == expected
    glob = f"{table.location}/**/*.parquet"
    assert sorted(row[0] for row in duckdb.sql(f"SELECT id FROM read_parquet('{glob}')").fetchall()) == expected
    assert sorted(pl.scan_parquet(glob).collect()["id"].to_list()) == expected
    assert len(table.plain_files()) == len(table.files()) <= 60
    maintenance = table.storage.maintenance(table.info)
    assert table.read_ids(snapshot_id=0) == list(range(files)), "time travel reads each file where it went"
    cpu.append(time.process_time())
    removed = maintenance.expire(retention=-(1 << 32), keep=1, delete=True).removed
    cpu.append(time.process_time())
    assert len(removed) >= files
    assert list((table.location / SUPERSEDED).iterdir()) == []
    assert table.read_ids() == expected
    adopted, scanned, folded, _, expired = (after - before for before, after in itertools.pairwise(cpu))
    with capsys.disabled():
        print(
            f"\n{files} files: adopted {adopted:.1f}, scanned {scanned:.1f}, folded by {commits} commits {folded:.1f}, "
            f"expired {expired:.1f} s of CPU"
        )
