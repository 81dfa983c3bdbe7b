"""Files that an upsert replaces: sums of manifests, what readers see, and what older plugins must refuse."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laketier.kit.manifests import FileEntry, Manifest, files_at
from laketier.kit.manifests.rollup import Block, write_rollups
from laketier.spi import BucketSpec, PartitionField, ScanRequest, TableDescriptor, Token, WriteMode
from laketier.tiering import TieringRound
from laketier_localfile.layout import LAYOUT
from laketier_localfile.options import LocalFileOptions


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": i, "region": "r"} for i in ids]


def upsert(table: Any, epoch: int, ids: Sequence[int], replaced: Sequence[str] = ()) -> int:
    result = replace(table.stage(rows(*ids)), replaced=tuple(replaced))
    tiering = TieringRound(table.factory, token=Token("p", "run", epoch), mode=WriteMode.UPSERT)
    tiering.begin()
    committed = tiering.commit([result])
    assert committed.snapshot_id is not None
    return committed.snapshot_id


def files(table: Any, **request: Any) -> list[str]:
    return [
        name for split in table.storage.source(table.info).plan(ScanRequest(**request)).splits for name in split.files
    ]


def readers(table: Any) -> dict[str, list[int]]:
    pattern = f"{table.location}/**/*.parquet"
    return {
        "DuckDB": sorted(row[0] for row in duckdb.sql(f"SELECT id FROM '{pattern}'").fetchall()),
        "Polars": sorted(pl.scan_parquet(pattern).collect()["id"].to_list()),
        "pyarrow": sorted(ds.dataset(table.location, format="parquet").to_table()["id"].to_pylist()),
        "laketier": table.read_ids(),
    }


def test_readers_of_the_folder_agree(table: Any) -> None:
    before = upsert(table, 0, [1, 2])
    upsert(table, 1, [3])
    [first, _] = files(table)
    upsert(table, 2, [1, 4], [first])
    for name, seen in readers(table).items():
        assert seen == [1, 3, 4], name
    assert [path.name for path in (table.location / "__superseded").iterdir()] == [f"{first}.superseded"]
    assert table.read_ids(snapshot_id=before) == [1, 2]
    assert [info.operation for info in table.storage.history(table.info).snapshots(3)] == ["upsert"] * 3


@pytest.mark.parametrize(
    "point", ["publish.after_manifest_before_renames", "publish.mid_retire", "publish.mid_renames"]
)
def test_readers_of_the_folder_never_see_both(table: Any, point: str) -> None:
    """Killed between the manifest and the renames: ours sees the epoch, the others too little; `open` mends it."""
    upsert(table, 0, range(100, 104))
    code, said = table.child(f"{point}=kill", 1, mode="upsert").join()
    assert code == -signal.SIGKILL, said
    old, new = [100, 101, 102, 103], [1000, 1001, 1002, 1003]
    assert table.read_ids() == new
    pattern = f"{table.location}/**/*.parquet"
    seen = sorted(path.name for path in table.location.glob("*.parquet"))
    ids = sorted(row[0] for row in duckdb.sql(f"SELECT id FROM '{pattern}'").fetchall()) if seen else []
    assert set(ids) <= set(old) or set(ids) <= set(new)
    table.committer(WriteMode.UPSERT).open()
    assert set(map(tuple, readers(table).values())) == {tuple(new)}


def entry(name: str) -> FileEntry:
    return FileEntry(name, 1, 1, 0, details={"footer": "f", "stats": {}})


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_sums_of_manifests(data: Any) -> None:
    """However a history is cut into blocks, the sum is what replaying it one by one gives."""
    live: list[str] = []
    blocks = []
    for number in range(data.draw(st.integers(1, 20))):
        kind = data.draw(st.sampled_from(["append", "upsert", "upsert", "overwrite"]))
        gone = data.draw(st.lists(st.sampled_from(live), unique=True)) if live and kind == "upsert" else []
        added = [f"part-{number}-{i}.parquet" for i in range(data.draw(st.integers(0, 2)))]
        kept = [] if kind == "overwrite" else [name for name in live if name not in gone]
        live = kept + added
        manifest = Manifest(
            table_uuid="u",
            number=number,
            previous="",
            at=0,
            commit_id="",
            kind=kind,
            metadata_at=0,
            added=tuple(map(entry, added)),
            removed=tuple(gone),
        )
        blocks.append(Block.of(Manifest.decode(manifest.encode(), Path("m"), LAYOUT)))
    while len(blocks) > 1:
        first = data.draw(st.integers(0, len(blocks) - 2))
        last = data.draw(st.integers(first + 2, len(blocks)))
        joined = Block.join(blocks[first:last])
        body = json.loads(joined.encode())["body"]
        assert body["version"] == (2 if joined.removed else 1)
        blocks[first:last] = [Block.from_body(body, LAYOUT)]
    assert [each.path for each in blocks[0].files] == live
    assert blocks[0].removed == ()


def test_rollups_of_upserts(make_table: Any) -> None:
    from laketier_localfile.options import LocalFileOptions

    table = make_table(options=LocalFileOptions(manifests_per_rollup=3))
    expected = {0: {0}}
    upsert(table, 0, [0])
    for epoch in range(1, 30):
        upsert(table, epoch, [epoch], files(table)[:1] if epoch % 3 else ())
        expected[epoch] = (expected[epoch - 1] - {min(expected[epoch - 1])} if epoch % 3 else expected[epoch - 1]) | {
            epoch
        }
    log = table.log
    summed = {number: [each.path for each in files_at(log, number)] for number in range(31)}
    for epoch, ids in expected.items():
        assert set(table.read_ids(snapshot_id=epoch + 1)) == ids
    rollups = list((log.folder / "rollups").iterdir())
    assert rollups
    for path in rollups:
        path.unlink()
    assert {number: [each.path for each in files_at(log, number)] for number in range(31)} == summed
    for number in range(31):
        write_rollups(log, number)
    assert {number: [each.path for each in files_at(log, number)] for number in range(31)} == summed


def version_of(path: Path) -> int:
    version: int = json.loads(path.read_bytes())["body"]["version"]
    return version


def test_older_plugins_refuse_what_they_would_misread(table: Any) -> None:
    """They know version 1 alone. What they read rightly keeps it."""
    upsert(table, 0, [1])
    upsert(table, 1, [2], files(table))
    table.round(2, rows(3))
    assert [version_of(table.log.path(number)) for number in range(4)] == [1, 1, 2, 1]
    keyed = TableDescriptor(
        table.schema, (PartitionField("region"),), BucketSpec(2, ("id",)), primary_key=("id", "region")
    )
    table.path = replace(table.path, table="keyed")
    assert table.storage.catalog().create_table(table.path, keyed).descriptor == keyed
    assert version_of(table.log.path(0)) == 2


def test_a_table_of_before_is_read(table: Any) -> None:
    """Manifests of version 1 have neither field."""
    table.round(0)
    for number in range(2):
        body = json.loads(table.log.path(number).read_bytes())["body"]
        assert "removed" not in body
        assert "primary_key" not in (body["metadata"] or {})
    assert table.log.read(1).removed == ()
    assert table.info.descriptor.primary_key == ()


def test_replacing_what_has_moved_away_is_told(table: Any) -> None:
    """The file of a removed name is nowhere, so time travel to it is not possible: a warning, not an error."""
    upsert(table, 0, [1])
    [name] = files(table)
    (table.location / name).unlink()
    upsert(table, 1, [2], [name])
    assert table.read_ids() == [2]


def test_plain_paths_of_older_snapshots(table: Any) -> None:
    table.options = LocalFileOptions(fold_files=0)
    first = upsert(table, 0, [1])
    upsert(table, 1, [2], files(table))
    plan = table.storage.source(table.info).plan(ScanRequest(snapshot_id=first))
    [split] = plan.splits
    assert split.plain_parquet is not None
    assert pa.parquet.read_table(split.plain_parquet)["id"].to_pylist() == [1]
