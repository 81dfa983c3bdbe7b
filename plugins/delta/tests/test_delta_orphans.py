"""What below a Delta table is an orphan, and what its log, or somebody else, still needs."""

from __future__ import annotations

import json
import os
import time
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from laketier.kit import failpoints
from laketier.maintenance.orphans import collect_orphans
from laketier.spi import BucketSpec, CorruptTable, IncompatibleTable, WriteMode
from laketier.tiering import RoundOutcome
from laketier.tiering.failpoints import COLLECTION, PROTOCOL
from laketier_delta import references
from laketier_delta.references import unreferenced

SOON = 60_000
PARTITIONED = pa.schema([("id", pa.int64()), ("r", pa.string()), ("d", pa.date32())])
AWKWARD = ["a b/ü%20", "=", "%2F", "x=y/z", "plain", "..", " ", None]


def orphans(lake, before=None):
    now = time.time_ns() // 1_000_000
    return lake.storage.maintenance(lake.table).orphans(now + SOON if before is None else before)


def paths(lake, kind="data"):
    return {file.path for file in orphans(lake) if file.kind == kind}


def staged(lake, data):
    return {file.path for file in lake.stage(data).files}


def collect(lake):
    time.sleep(0.02)  # files and horizon are told apart by milliseconds, and a file system's clock may lag behind
    return collect_orphans(lake.storage, lake.table, grace=timedelta(0))


def data_files(lake):
    root = Path(lake.uri)
    return {str(path.relative_to(root)) for path in root.rglob("laketier-*.parquet")}


def log_file(lake, name):
    return Path(lake.uri, "_delta_log", name)


def entry(lake, version):
    return log_file(lake, f"{version:020}.json")


def clean_log(lake):
    """As if the retention had passed: a checkpoint of the newest version, and nothing older."""
    DeltaTable(lake.uri).create_checkpoint()
    newest = DeltaTable(lake.uri).version()
    for path in Path(lake.uri, "_delta_log").glob("0*"):
        if int(path.name[:20]) < newest:
            path.unlink()


def rows(*partitions):
    days = [date(2020, 1, 1 + number) for number in range(len(partitions))]
    return pa.table({"id": list(range(len(partitions))), "r": list(partitions), "d": days}, schema=PARTITIONED)


@pytest.mark.parametrize("cleaned", [False, True])
def test_partition_values_that_need_quoting(lake, support, cleaned):
    lake.create(PARTITIONED, "r", "d")
    lake.append(rows(*AWKWARD))
    live = data_files(lake)
    dead = staged(lake, rows(*AWKWARD))
    assert len(live) == len(dead) == len(AWKWARD)
    if cleaned:
        clean_log(lake)
    assert paths(lake) == dead
    assert {file.path for file in collect(lake).removed} == dead
    assert data_files(lake) == live
    assert DeltaTable(lake.uri).to_pyarrow_table().num_rows == len(AWKWARD)


def test_bucketed_files(lake, support):
    lake.create(buckets=BucketSpec(4, ("id",), "iceberg"))
    lake.append(support.ids(*range(20)))
    dead = staged(lake, support.ids(*range(20)))
    assert len(dead) > 1
    assert paths(lake) == dead


def test_what_an_old_version_needs_stays_after_an_overwrite(lake, support):
    lake.create()
    lake.epoch(0)
    lake.epoch(1)
    lake.epoch(2, mode=WriteMode.OVERWRITE)
    dead = staged(lake, support.ids(9))
    assert {file.path for file in collect(lake).removed} >= dead
    assert paths(lake) == set()
    assert support.values(DeltaTable(lake.uri, version=2).to_pyarrow_table()) == [0, 1]
    DeltaTable(lake.uri).restore(2)
    assert collect(lake).removed == ()
    assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == [0, 1]


def test_tombstones_in_a_checkpoint_are_left_to_vacuum(lake, support):
    lake.create()
    lake.epoch(0)
    lake.epoch(1, mode=WriteMode.OVERWRITE)
    lake.epoch(2)
    clean_log(lake)
    dead = staged(lake, support.ids(9))
    assert len(data_files(lake)) == 4
    assert paths(lake) == dead
    DeltaTable(lake.uri).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert len(data_files(lake)) == 3
    assert paths(lake) == dead


def test_what_the_log_has_forgotten_is_an_orphan(lake, support):
    lake.create(delta__deletedFileRetentionDuration="interval 0 seconds")
    lake.epoch(0)
    forgotten = data_files(lake)
    lake.epoch(1, mode=WriteMode.OVERWRITE)
    lake.epoch(2)
    assert paths(lake) == set(), "version 1 can be read"
    clean_log(lake)
    assert paths(lake) == forgotten
    collect(lake)
    assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == [1, 2]


def test_after_a_checkpoint_and_the_cleanup_of_delta_rs(lake, support):
    lake.create(delta__checkpointInterval="3", delta__logRetentionDuration="interval 0 seconds")
    for epoch in range(8):
        lake.epoch(epoch)
    assert not entry(lake, 1).exists()
    dead = staged(lake, support.ids(99))
    assert paths(lake) == dead
    collect(lake)
    assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == list(range(8))


def test_a_version_between_gaps_of_the_log_keeps_its_files(lake, support):
    """Somebody deleted entries, and an old checkpoint still makes its version readable."""
    lake.create(delta__deletedFileRetentionDuration="interval 0 seconds")
    lake.epoch(0)
    lake.epoch(1, mode=WriteMode.OVERWRITE)
    lake.epoch(2)
    DeltaTable(lake.uri).create_checkpoint()
    lake.epoch(3, mode=WriteMode.OVERWRITE)
    lake.epoch(4)
    DeltaTable(lake.uri).create_checkpoint()
    for version in (0, 1, 2, 4):
        entry(lake, version).unlink()
    assert support.values(DeltaTable(lake.uri, version=3).to_pyarrow_table()) == [1, 2]
    before = data_files(lake)
    assert len(paths(lake)) == 1, "only what version 1 alone had"
    collect(lake)
    assert len(data_files(lake)) == len(before) - 1
    assert support.values(DeltaTable(lake.uri, version=3).to_pyarrow_table()) == [1, 2]
    assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == [3, 4]


def test_files_of_others_are_not_touched(lake, support):
    lake.create(PARTITIONED, "r")
    lake.append(rows("a"))
    (ours,) = data_files(lake)
    (dead,) = staged(lake, rows("a"))
    strange = [
        "r=a/part-00000-5d4b-c000.snappy.parquet",
        "r=a/mine.parquet",
        "r=a/deletion_vector_1c2f.bin",
        "_change_data/cdc-00000.parquet",
        "_delta_log/_commit_1234.json.tmp",
        f"r=a/{Path(dead).name}.bak",
        f"backup/{Path(dead).name}",
        f"r=a/d=2020-01-01/{Path(dead).name}",
        f"{Path(dead).name}",
        "_laketier/p/notes.json",
        "_laketier/p/deep/0123456789abcdef.json",
        "_laketier/0123456789abcdef.json",
    ]
    for name in strange:
        Path(lake.uri, name).parent.mkdir(parents=True, exist_ok=True)
        Path(lake.uri, name).write_bytes(b"x")
    assert {file.path for file in orphans(lake)} == {dead}
    collect(lake)
    assert not Path(lake.uri, dead).exists()
    assert all(Path(lake.uri, name).exists() for name in [*strange, ours])


def test_absolute_paths_and_files_elsewhere(lake, support, tmp_path):
    """A log may name a file of the table by its full path, and, as a shallow clone, one of another table."""
    lake.create()
    mine, other = staged(lake, support.ids(1)), staged(lake, support.ids(2))
    (here,), (there,) = mine, other
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Path(lake.uri, there).rename(elsewhere / there)
    adds = [
        {
            "add": {
                "path": path.as_uri(),
                "partitionValues": {},
                "size": path.stat().st_size,
                "modificationTime": 1,
                "dataChange": True,
            }
        }
        for path in (Path(lake.uri, here), elsewhere / there)
    ]
    entry(lake, 1).write_text("\n".join(map(json.dumps, adds)))
    dead = staged(lake, support.ids(3))
    assert paths(lake) == dead
    collect(lake)
    assert Path(lake.uri, here).exists()
    assert (elsewhere / there).exists()


def test_age_is_that_of_the_file_and_the_attempt_is_named(lake, support):
    """The horizon bars attempts, so a file whose time says old is left while its attempt may be published."""
    lake.create()
    (path,) = staged(lake, support.ids(1))
    os.utime(Path(lake.uri, path), (1, 1))
    assert [file.attempt for file in orphans(lake, 1_001)] == [path.split("-")[2]]
    collected = collect_orphans(lake.storage, lake.table, grace=timedelta(days=3))
    assert [[file.path for file in files] for files in (collected.removed, collected.ahead)] == [[], [path]]
    Path(lake.uri, path).touch()
    modified = Path(lake.uri, path).stat().st_mtime_ns // 1_000_000
    assert orphans(lake, modified) == []
    assert len(orphans(lake, modified + 1)) == 1


def test_only_records_that_nobody_points_at_go(lake, support):
    lake.create()
    names = ["a", "a/b", "fence/a", "../x", "ü 💧", ".", "%2F"]
    for number, name in enumerate(names):
        lake.epoch(0, support.ids(number), pipeline=name)
        lake.epoch(1, support.ids(10 + number), pipeline=name)
    lost = lake.committer()
    state = lost.open()
    for number, name in enumerate(("a", "never")):
        state.records.put(support.watermark(7 + number, name))
    assert len(paths(lake, "record")) == len(names) + 2
    collect(lake)
    state = lake.committer().open()
    assert [state.watermark(name).token.epoch for name in names] == [1] * len(names)
    for name in names:
        assert lake.epoch(2, pipeline=name).outcome is RoundOutcome.PUBLISHED
    assert len(list(Path(lake.uri, "_laketier").rglob("*.json"))) == 2 * len(names) + 1


def test_old_horizons_alone_are_not_worth_a_collection(lake, support):
    lake.create()
    for number in range(3):
        lake.stage(support.ids(number))
        collect(lake)
    assert len(list(Path(lake.uri, "_laketier", "laketier-orphans").iterdir())) == 2
    version = lake.table.snapshot_id
    assert collect(lake).horizon is None
    assert lake.table.snapshot_id == version


def test_records_stay_where_transactions_expire(lake_with, support):
    lake = lake_with(accept_transaction_retention=True)
    lake.create(delta__setTransactionRetentionDuration="interval 1 hours")
    lake.epoch(0)
    lake.epoch(1)
    dead = staged(lake, support.ids(9))
    assert {file.path for file in orphans(lake)} == dead


def test_a_healthy_table_is_looked_at_and_its_history_is_not_read(lake, support, monkeypatch):
    lake.create(delta__checkpointInterval="4")
    for epoch in range(10):
        lake.epoch(epoch)
    read = []
    monkeypatch.setattr(references, "_names", lambda *of, names=references._names: read.append(of[1]) or names(*of))
    assert paths(lake) == set()
    names = {Path(path).name.lstrip("0") for path in read}
    assert names == {"8.checkpoint.parquet", "9.json", "10.json"}
    lake.stage(support.ids(9))
    read.clear()
    assert len(paths(lake)) == 1
    names = [Path(path).name.lstrip("0") for path in read]
    assert sorted(names) == sorted(["8.checkpoint.parquet", *(f"{version or ''}.json" for version in range(11))])


def test_a_log_that_is_cleaned_up_meanwhile_is_looked_at_again(lake, support, monkeypatch):
    lake.create(delta__deletedFileRetentionDuration="interval 0 seconds")
    lake.epoch(0)
    lake.epoch(1)
    DeltaTable(lake.uri).create_checkpoint()
    lake.epoch(2, mode=WriteMode.OVERWRITE)
    DeltaTable(lake.uri).create_checkpoint()
    lake.epoch(3)
    dead = staged(lake, support.ids(9))
    list_log = references.LogFiles.of

    def list_and_clean(filesystem, where):
        log = list_log(filesystem, where)
        for version in (0, 1, 2, 3):
            entry(lake, version).unlink(missing_ok=True)
        return log

    monkeypatch.setattr(references.LogFiles, "of", list_and_clean)
    assert paths(lake) == dead, "what version 2 needs is in its checkpoint, which was not needed at first"
    assert support.values(DeltaTable(lake.uri, version=2).to_pyarrow_table()) == [0, 1]


def test_checkpoints_in_parts(lake, support):
    lake.create()
    for epoch in range(4):
        lake.epoch(epoch)
    clean_log(lake)
    entry(lake, 4).unlink()
    (whole,) = Path(lake.uri, "_delta_log").glob("*.checkpoint.parquet")
    actions = pq.read_table(whole)
    middle = actions.num_rows // 2
    parts = [log_file(lake, f"{4:020}.checkpoint.{part:010}.{2:010}.parquet") for part in (1, 2)]
    pq.write_table(actions.slice(0, middle), parts[0])
    pq.write_table(actions.slice(middle), parts[1])
    whole.unlink()
    here = pafs.LocalFileSystem()
    live = {Path(path).name for path in data_files(lake)}
    assert unreferenced(here, lake.uri, live) == set()
    parts[1].unlink()
    with pytest.raises(CorruptTable, match="none is taken for an orphan"):
        unreferenced(here, lake.uri, live)


def test_checkpoints_of_version_two_and_damaged_ones_are_refused(lake, support):
    lake.create()
    lake.epoch(0)
    lake.stage(support.ids(9))
    clean_log(lake)
    (whole,) = Path(lake.uri, "_delta_log").glob("*.checkpoint.parquet")
    named = log_file(lake, f"{0:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json")
    named.touch()
    with pytest.raises(IncompatibleTable, match="version 2"):
        orphans(lake)
    named.unlink()
    actions = pq.read_table(whole)
    sidecar = pa.array([{"path": "s.parquet"}] + [None] * (actions.num_rows - 1), pa.struct([("path", pa.string())]))
    names = [name for name in actions.column_names if name != "sidecar"]
    pq.write_table(actions.select(names).append_column("sidecar", sidecar), whole)
    with pytest.raises(IncompatibleTable, match="version 2"):
        unreferenced(pafs.LocalFileSystem(), lake.uri, {f"laketier-{0:016}-{0:032}-00000.parquet"})
    whole.write_bytes(b"PAR1")
    with pytest.raises(CorruptTable, match="not a checkpoint"):
        unreferenced(pafs.LocalFileSystem(), lake.uri, {f"laketier-{0:016}-{0:032}-00000.parquet"})


def compact(uri):
    DeltaTable(uri).optimize.compact()


def vacuum(uri):
    DeltaTable(uri).vacuum(0, dry_run=False, enforce_retention_duration=False)


def append(uri):
    write_deltalake(uri, pa.table({"id": [-1], "v": ["f"]}), mode="append")


@pytest.mark.parametrize("foreign", [compact, vacuum, append])
def test_others_at_each_step_of_a_round(lake, support, foreign):
    lake.create()
    for epoch in range(3):
        lake.epoch(epoch)
    compact(lake.uri)
    steps = (*PROTOCOL, "stage.after_close_before_fsync", "publish.between_record_and_commit")
    seen = []
    for epoch, step in enumerate(steps, start=3):

        def interfere(name, step=step, epoch=epoch):
            if name == step and (epoch, step) not in seen:  # once, as else no attempt would ever get through
                seen.append((epoch, step))
                foreign(lake.uri)

        with failpoints.observed(interfere):
            assert lake.epoch(epoch).outcome is RoundOutcome.PUBLISHED
    assert [step for _, step in seen] == [step for step in steps if step != "discard.before"]
    found = [value for value in support.values(DeltaTable(lake.uri).to_pyarrow_table()) if value >= 0]
    assert found == list(range(3 + len(steps)))


@pytest.mark.parametrize("step", COLLECTION)
@pytest.mark.parametrize("foreign", [compact, vacuum, append, lambda uri: DeltaTable(uri).restore(3)])
def test_others_at_each_step_of_a_collection(lake, support, foreign, step):
    lake.create()
    for epoch in range(3):
        lake.epoch(epoch)
    lake.epoch(0, support.ids(50), mode=WriteMode.OVERWRITE, pipeline="q")
    dead = staged(lake, support.ids(99))
    before = DeltaTable(lake.uri).version()

    def interfere(name):
        if name == step:
            foreign(lake.uri)

    with failpoints.observed(interfere):
        assert {file.path for file in collect(lake).removed if file.kind == "data"} == dead
    assert DeltaTable(lake.uri).version() > before
    read = support.values(DeltaTable(lake.uri).to_pyarrow_table())
    assert [value for value in read if value >= 0] in ([50], [0, 1, 2])
    if foreign is not vacuum:
        assert support.values(DeltaTable(lake.uri, version=3).to_pyarrow_table()) == [0, 1, 2]
