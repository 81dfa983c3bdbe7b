"""Tables whose manifests were deleted or damaged: who is told, what is made again, and who may write then."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    BucketSpec,
    CommitterInitContext,
    CorruptTable,
    IncompatibleTable,
    LaketierError,
    RolledBack,
    TableDescriptor,
    TableNotFound,
    WriteMode,
    new_attempt_id,
)
from laketier.tiering import pipelines
from laketier_localfile import lying_on_disk

MANIFESTS = "_laketier_manifests"


def rebuild(table: Any, **options: Any) -> Any:
    return table.storage.adoption().rebuild(table.path, **options)


def lose(table: Any) -> None:
    shutil.rmtree(table.location / MANIFESTS)


def test_a_table_without_manifests_is_told_by_readers_and_writers(table: Any) -> None:
    table.round(0)
    factory = table.factory
    lose(table)
    for look in (
        lambda: table.info,
        lambda: table.create(),
        lambda: table.scan(),
        lambda: table.storage.adoption().adopt(table.path),
    ):
        with pytest.raises(LaketierError, match="laketier schema rebuild"):
            look()
    with pytest.raises(LaketierError):
        factory.create_committer(CommitterInitContext(new_attempt_id())).open()


def test_it_is_made_again_of_its_files(table: Any) -> None:
    for epoch in range(3):
        table.round(epoch)
    before = table.info
    lose(table)
    made = rebuild(table)
    assert (made.files, made.rows) == (3, 12)
    assert table.info.schema == before.schema
    assert table.info.table_uuid != before.table_uuid
    assert table.read_ids() == sorted(row["id"] for epoch in range(3) for row in table.ids(epoch))
    assert any("watermarks of all pipelines are lost" in sentence for sentence in made.told)
    with pytest.raises(IncompatibleTable, match="nothing to rebuild"):
        rebuild(table)


def test_no_pipeline_begins_anew_unasked(table: Any) -> None:
    for epoch in range(3):
        table.round(epoch)
    lose(table)
    rebuild(table)
    for pipeline in ("p", "another"):
        for epoch in (0, 2, 3):
            with pytest.raises(RolledBack, match="laketier pipeline adopt"):
                table.round(epoch, pipeline=pipeline)
    assert len(table.read_ids()) == 12
    pipelines.adopt(table.factory, "p", run="run", epoch=2)
    assert table.round(2).outcome.value != "committed"
    table.round(3)
    with pytest.raises(RolledBack):
        table.round(0, pipeline="another")
    pipelines.forget(table.factory, "another")
    table.round(0, [{"id": 99, "region": "r"}], pipeline="another")
    assert len(table.read_ids()) == 17
    table.round(None, [{"id": 7, "region": "r"}])
    assert len(table.read_ids()) == 18


def test_only_table_json_is_lost(table: Any) -> None:
    for epoch in range(3):
        table.round(epoch)
    table.round(None, [{"id": 5, "region": "r"}], mode=WriteMode.OVERWRITE)
    uuid = table.info.table_uuid
    (table.location / MANIFESTS / "table.json").unlink()
    with pytest.raises(CorruptTable, match="laketier schema rebuild"):
        _ = table.info
    made = rebuild(table)
    assert (made.table.table_uuid, made.rows) == (uuid, 1)
    assert table.read_ids() == [5]
    assert len(table.read_ids(snapshot_id=3)) == 12
    assert table.round(2).outcome.value != "committed"
    table.round(3)


@pytest.mark.parametrize("harm", ["cut", "gone", "first"])
def test_a_damaged_chain_tells_columns_partitions_and_pipelines(make_table: Callable[..., Any], harm: str) -> None:
    table = make_table(partition_by=("region",))
    for epoch in range(4):
        table.round(epoch)
    rows = table.read_ids()
    path = table.log.path({"cut": 4, "gone": 2, "first": 0}[harm])
    path.unlink() if harm == "gone" else path.write_bytes(path.read_bytes()[:-10])
    assert harm != "cut" or _fails(table)
    made = rebuild(table)
    assert table.read_ids() == rows
    assert [str(each) for each in table.info.descriptor.partition_by] == ["region"]
    known = [sentence for sentence in made.told if "Pipeline p was at epoch" in sentence]
    assert bool(known) == (harm != "first")
    with pytest.raises(RolledBack):
        table.round(4)
    assert table.scan(filters=()).num_rows == 16
    assert len(list((table.location / MANIFESTS).glob("*.lost"))) == 2


def _fails(table: Any) -> bool:
    with pytest.raises(CorruptTable):
        table.round(4)
    return True


@pytest.mark.parametrize("backwards", [False, True])
def test_of_several_lost_chains_the_last_one_tells(
    table: Any, monkeypatch: pytest.MonkeyPatch, backwards: bool
) -> None:
    """A table that was rebuilt before has an older chain beside the one that is damaged now, and a folder lists them in
    any order. The host that rebuilt it first has a clock that is years behind."""
    for epoch in range(3):
        table.round(epoch)
    table.log.path(1).write_bytes(b"damaged")
    with monkeypatch.context() as behind:
        for module in ("creation", "committer"):
            behind.setattr(f"laketier.kit.manifests.{module}.host_time", lambda: 1_000_000_000_000)
        rebuild(table)
        pipelines.adopt(table.factory, "p", run="run", epoch=2)
        table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int32()))])
        for epoch in range(3, 6):
            table.round(epoch)
    [old] = (each for each in (table.location / MANIFESTS).glob("*.lost") if each.is_dir())
    old.rename(old.with_name("0.lost"))
    monkeypatch.setattr(lying_on_disk, "names_in", lambda folder: sorted(os.listdir(folder), reverse=backwards))
    table.log.path(1).write_bytes(b"damaged")
    made = rebuild(table)
    assert table.info.schema.names == ["id", "region", "more"]
    assert any("Pipeline p was at epoch 5" in sentence for sentence in made.told)


def test_buckets_and_keys(make_table: Callable[..., Any]) -> None:
    table = make_table(buckets=BucketSpec(4, ("id",)))
    table.round(0)
    table.round(1)
    rows = table.read_ids()
    damaged = table.log.path(2)
    damaged.write_bytes(b"")
    made = rebuild(table)
    assert table.info.descriptor.buckets == BucketSpec(4, ("id",))
    assert table.read_ids() == rows
    lose(table)
    made = rebuild(table, primary_key=("id",))
    assert table.info.descriptor.buckets is None
    assert table.info.descriptor.primary_key == ("id",)
    assert any("had buckets" in sentence for sentence in made.told)
    assert table.read_ids() == rows


def test_what_was_superseded_and_what_was_never_published_stays_out(table: Any) -> None:
    table.round(0)
    table.round(None, [{"id": 5, "region": "r"}], mode=WriteMode.OVERWRITE)
    table.stage([{"id": 6, "region": "r"}])
    lose(table)
    with pytest.raises(IncompatibleTable, match="1 files are staged, and some may be published"):
        rebuild(table)
    rebuild(table, leave_staged=True)
    assert table.read_ids() == [5]


@pytest.mark.parametrize(
    "point", ["publish.mid_retire", "publish.mid_renames", "publish.after_manifest_before_renames"]
)
def test_a_commit_that_was_killed_and_then_its_manifests(table: Any, point: str) -> None:
    """Nothing is shown twice: neither old and new rows together, nor half of a commit without a word."""
    table.round(0)
    _killed(table, point)
    lose(table)
    with pytest.raises(IncompatibleTable, match="files are staged"):
        rebuild(table)


def _killed(table: Any, point: str) -> None:
    child = table.child(f"{point}=kill", 1, mode="overwrite")
    assert child.join()[0] == -signal.SIGKILL


def test_a_file_that_has_its_place_among_the_superseded_is_not_live(table: Any) -> None:
    table.round(0)
    [old] = table.plain_files()
    table.round(None, [{"id": 5, "region": "r"}], mode=WriteMode.OVERWRITE)
    superseded = table.location / "__superseded" / f"{old.name}.superseded"
    os.link(superseded, old)
    lose(table)
    made = rebuild(table)
    assert made.left_out == {old.name: "it was superseded"}
    assert table.read_ids() == [5]


def test_a_writer_of_the_old_table_can_not_publish_any_more(table: Any) -> None:
    table.round(0)
    committer = table.committer()
    state = committer.open()
    staged = table.stage([{"id": 9, "region": "r"}])
    (table.log.path(0)).write_bytes(b"")
    with pytest.raises(IncompatibleTable, match="files are staged"):
        rebuild(table)
    rebuild(table, leave_staged=True)
    with pytest.raises(LaketierError):
        committer.publish(state, [staged], None)
    assert len(table.read_ids()) == 4
    found = duckdb.sql(f"SELECT count(*) FROM '{table.location}/**/*.parquet'").fetchall()
    assert found == [(4,)]


@pytest.mark.parametrize("point", ["rebuild.after_move_aside", "create.before_table_file"])
def test_killed_in_the_middle_it_can_be_run_again(table: Any, point: str) -> None:
    for epoch in range(2):
        table.round(epoch)
    rows = table.read_ids()
    table.log.path(1).write_bytes(b"damaged")
    command = ["schema", "rebuild", str(table.path), "-f", "localfile", "-w", str(table.warehouse), "--yes"]
    code = "import sys; from laketier.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *command], env={**os.environ, "LAKETIER_FAILPOINTS": f"{point}=kill"}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(CorruptTable, match="laketier schema rebuild"):
        _ = table.info
    with pytest.raises(IncompatibleTable):
        table.storage.adoption().adopt(table.path)
    made = rebuild(table)
    assert table.read_ids() == rows
    assert any("Pipeline p was at epoch 1" in sentence for sentence in made.told)
    with pytest.raises(RolledBack):
        table.round(2)


def test_what_is_no_table_is_not_rebuilt(make_table: Callable[..., Any], tmp_path: Any) -> None:
    table = make_table()
    shutil.rmtree(table.location)
    with pytest.raises(TableNotFound):
        rebuild(table)
    table.location.mkdir()
    with pytest.raises(TableNotFound):
        rebuild(table)
    (table.location / "__in_progress").mkdir()
    assert table.create().schema == table.schema


def test_an_empty_table_needs_its_description(table: Any) -> None:
    lose(table)
    with pytest.raises(TableNotFound):
        rebuild(table)
    assert table.storage.catalog().create_table(table.path, TableDescriptor(table.schema)).schema == table.schema
