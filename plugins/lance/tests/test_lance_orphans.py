"""What of a dataset is an orphan, whatever others did to it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.blob import blob_array, blob_field
from lance.fragment import write_fragments

from laketier.kit import failpoints
from laketier.maintenance.orphans import Collection, collect_orphans
from laketier.spi import Collected, FeatureNotSupported, TableError
from laketier.spi.clocks import host_time
from laketier.tiering import RoundOutcome
from laketier_lance.clock import storage_time
from laketier_lance.options import LanceOptions

SOON = 60_000
LISTED = "orphans.between_files_and_versions"
VECTORS = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.list_(pa.float32(), 8))])

ONE_ROUND = """
import sys
import pyarrow as pa
from laketier.spi import LakeStorageConfig, TablePath, Token
from laketier.tiering import TieringRound, write_task
from laketier_lance.plugin import LancePlugin

storage = LancePlugin().create_storage(LakeStorageConfig(sys.argv[1], None))
factory = storage.tiering_factory(storage.catalog().load_table(TablePath("db", "t")))
rows = pa.record_batch({"id": pa.array([2, 3], pa.int64()), "name": ["2", "3"]})
TieringRound(factory, token=Token("p", "r", 1)).commit_messages([write_task(factory, [rows])])
"""


def orphans(table) -> dict[str, str]:
    """The paths of all orphans, whatever their age, and their kinds."""
    found = table.storage.maintenance(table.info).orphans(time.time_ns() // 1_000_000 + SOON)
    return {file.path: file.kind for file in found}


def collect(table) -> Collection:
    """All that was there before: by the clock of the file system, which goes on by some milliseconds at a time."""
    # Names of files have the time of the host, which may be ahead of that of the file system by some milliseconds.
    now = max(storage_time(table.location, LanceOptions()), host_time())
    while storage_time(table.location, LanceOptions()) <= now:
        pass
    return collect_orphans(table.storage, table.info, grace=timedelta(0))


def versions(table) -> dict[tuple[str | None, int], pa.Table]:
    """The rows of each version of each branch."""
    main = table.open()
    datasets = [(None, main), *((name, main.checkout_version((name, None))) for name in main.branches.list())]
    return {
        (name, reference["version"]): dataset.checkout_version((name, reference["version"])).to_table()
        for name, dataset in datasets
        for reference in dataset.version_refs()
    }


def clean_up(table) -> None:
    table.open().cleanup_old_versions(older_than=timedelta(0))


def compacted(table) -> None:
    table.foreign("compaction")


def compacted_and_cleaned_up(table) -> None:
    table.foreign("compaction")
    clean_up(table)


def restored(table) -> None:
    """Version 3 again, of which the one that is current now knows nothing but its files."""
    lance.dataset(table.location, version=3).restore()


def restored_and_cleaned_up(table) -> None:
    restored(table)
    clean_up(table)


def overwritten_and_restored(table) -> None:
    table.foreign("overwrite")
    restored(table)
    clean_up(table)


def deleted(table) -> None:
    table.foreign("delete")
    table.foreign("merge insert")


def deleted_and_cleaned_up(table) -> None:
    deleted(table)
    clean_up(table)


def forget(table, version: int) -> None:
    """As a tool that knows no branches: Lance's own cleanup keeps the version that a branch began with."""
    Path(table.location, "_versions", f"{2**64 - 1 - version}.manifest").unlink()


def branched(table) -> None:
    """The branch alone still needs files of main."""
    branch = table.open().create_branch("feature/x", 3)
    lance.write_dataset(pa.Table.from_batches([table.rows(50)]), branch, mode="append")
    table.foreign("overwrite")
    clean_up(table)
    forget(table, 3)


def tagged(table) -> None:
    table.open().tags.create("kept", 3)
    table.foreign("overwrite")
    table.open().cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)


def recast(table) -> None:
    table.foreign("cast")
    table.foreign("drop")


HISTORIES: list[Callable[..., None]] = [
    compacted,
    compacted_and_cleaned_up,
    restored,
    restored_and_cleaned_up,
    overwritten_and_restored,
    deleted,
    deleted_and_cleaned_up,
    branched,
    tagged,
    recast,
]


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_what_any_version_needs_stays(table, history):
    for epoch in range(4):
        table.append(epoch, epoch, 10 + epoch)
    staged = table.stage(table.rows(99))
    left = write_fragments(pa.Table.from_batches([table.rows(98)]), table.location, mode="append")
    history(table)
    before = versions(table)
    assert len(before) >= 1
    ours = {staged.files[0].path, f"data/{left[0].files[0].path}"}
    # What else there may be are transactions of commits that lost, against the horizon too.
    found = orphans(table)
    assert {path for path, kind in found.items() if kind != "transaction"} == ours
    collected = collect(table)
    assert {file.path for file in collected.removed} == found.keys()
    after = versions(table)
    for version, rows in before.items():
        assert after[version].equals(rows), version
    assert table.open().read_transaction(table.open().version) is not None
    assert not orphans(table).keys() & ours


def test_each_kind_is_told_from_what_is_live(table):
    """A deletion, an index, a transaction and data that nobody committed, beside those that are."""
    table.append(0, *range(1, 20))
    table.foreign("delete")
    table.foreign("index")
    dataset = table.open()
    dataset.get_fragments()[0].delete("id = 2")
    segment = dataset.create_index_uncommitted("id", "BTREE", name="other", fragment_ids=[0])
    location = Path(table.location)
    newest = max((location / "_transactions").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    shutil.copy(newest, location / "_transactions" / "3-11111111-1111-1111-1111-111111111111.txn")
    staged = table.stage(table.rows(99))
    found = orphans(table)
    kinds = sorted(set(found.values()))
    assert kinds == ["data", "deletion", "index", "transaction"]
    assert {path for path, kind in found.items() if kind == "data"} == {staged.files[0].path}
    assert {path.split("/")[1] for path, kind in found.items() if kind == "index"} == {str(segment.uuid)}
    assert len([kind for kind in found.values() if kind == "deletion"]) == 1
    assert [path for path, kind in found.items() if kind == "transaction"] == [
        "_transactions/3-11111111-1111-1111-1111-111111111111.txn"
    ]
    assert {file.path for file in collect(table).removed} == found.keys()
    assert table.ids() == list(range(2, 20))
    plan = table.open().scanner(filter="id = 7").explain_plan()
    assert "ScalarIndexQuery" in plan
    assert table.open().to_table(filter="id = 7").num_rows == 1
    assert orphans(table) == {}


def test_vector_indexes_stay_as_long_as_a_version_has_them(make_table):
    table = make_table(VECTORS)

    def rows(start):
        values = pa.array(np.random.default_rng(start).random(300 * 8, dtype=np.float32))
        ids = pa.array(range(start, start + 300), pa.int64())
        return pa.record_batch([ids, pa.FixedSizeListArray.from_arrays(values, 8)], VECTORS)

    for epoch in range(2):
        table.round(epoch).commit([table.stage(rows(300 * epoch))])
        if epoch == 0:
            table.open().create_index("v", "IVF_PQ", num_partitions=1, num_sub_vectors=2)
        else:
            table.open().optimize.optimize_indices()
    table.stage(rows(900))
    probe = {"nearest": {"column": "v", "q": np.zeros(8, np.float32), "k": 5, "nprobes": 1, "refine_factor": 20}}
    expected = {version["version"]: at(table, version).to_table(**probe) for version in table.open().versions()[2:]}
    folders = {path.name for path in (Path(table.location) / "_indices").iterdir()}
    assert len(folders) == 2
    assert [file.kind for file in collect(table).removed] == ["data"]
    assert {path.name for path in (Path(table.location) / "_indices").iterdir()} == folders
    for version, nearest in expected.items():
        assert at(table, {"version": version}).to_table(**probe).equals(nearest)


def at(table, version) -> lance.LanceDataset:
    return lance.dataset(table.location, version=version["version"])


@pytest.mark.parametrize("with_pipeline", [True, False])
def test_a_commit_in_flight_while_orphans_are_collected_is_refused_and_loses_nothing(table, with_pipeline):
    """It has opened the table, checked its files, and is about to commit: its files go, and so must it."""
    table.append(0, 1)
    epoch = 1 if with_pipeline else None
    staged = table.stage(table.rows(2))
    collections = []

    def meanwhile(name):
        if name == "publish.before_commit" and not collections:
            collections.append(None)  # the collector's own commit passes here too
            collections[0] = collect(table)

    with failpoints.observed(meanwhile), pytest.raises(Collected):
        table.round(epoch).commit([staged])
    assert [file.path for file in collections[0].removed] == [staged.files[0].path]
    assert table.ids() == [1]
    assert table.append(epoch, 2).outcome is RoundOutcome.PUBLISHED
    assert table.ids() == [1, 2]


@pytest.mark.parametrize("moment", [LISTED, "publish.before_commit"])
def test_a_commit_that_lands_while_orphans_are_listed_keeps_its_files(table, moment):
    """Between the files and the versions, and between the list and the horizon."""
    table.append(0, 1)
    staged = table.stage(table.rows(2))
    done = []

    def meanwhile(name):
        if name == moment and not done:
            done.append(name)
            table.round(1).commit([staged])

    with failpoints.observed(meanwhile):
        assert collect(table).removed == ()
    assert table.ids() == [1, 2]


def test_what_a_killed_driver_and_a_killed_task_leave_goes(table):
    table.append(0, 1)
    for point, kinds in {"publish.before_commit": {"data"}, "write.mid_file": {"temporary"}}.items():
        environment = {**os.environ, "LAKETIER_FAILPOINTS": f"{point}=kill"}
        killed = subprocess.run([sys.executable, "-c", ONE_ROUND, str(table.warehouse)], env=environment, check=False)
        assert killed.returncode == -signal.SIGKILL
        assert set(orphans(table).values()) == kinds
        collect(table)
        assert orphans(table) == {}
    table.append(1, 2, 3)
    assert table.ids() == [1, 2, 3]
    assert len(table.data_files()) == 2


@pytest.mark.parametrize(
    "name", ["_transactions/.tmpA1b2C3", "_versions/.tmpA1b2C3", "_versions/18446744073709551605.manifest#1"]
)
def test_what_a_process_killed_inside_lance_leaves_goes(table, name):
    """It wrote under another name, and did not get to the right one."""
    table.append(0, 1)
    (Path(table.location) / name).write_bytes(b"half")
    assert orphans(table) == {name: "temporary"}
    assert {file.path for file in collect(table).removed} == {name}
    assert not (Path(table.location) / name).exists()
    table.append(1, 2)
    assert table.ids() == [1, 2]


def test_a_local_file_of_a_whole_second_is_as_old_as_it_says(table):
    """Only object stores cut off what is below a second."""
    table.append(0, 1)
    table.stage(table.rows(99))
    [name] = orphans(table)
    now = time.time_ns()
    os.utime(Path(table.location) / name, ns=(now, now // 10**9 * 10**9))
    assert [file.path for file in collect(table).removed] == [name]


def test_versions_that_vanish_while_they_are_read_are_no_reason_to_delete(table):
    """Lance passes over a manifest that is gone, and what only that version refers to would look like an orphan."""
    table.append(0, 1)
    staged = table.stage(table.rows(2))

    def meanwhile(name):
        if name == LISTED:
            forget(table, 1)

    with failpoints.observed(meanwhile), pytest.raises(TableError, match="could not all be read"):
        collect(table)
    assert Path(table.location, staged.files[0].path).exists()


def test_a_damaged_version_is_no_reason_to_delete(table):
    table.append(0, 1)
    table.stage(table.rows(2))
    oldest = max(Path(table.location, "_versions").glob("*.manifest"), key=lambda path: int(path.stem))
    oldest.write_bytes(oldest.read_bytes()[:20])
    with pytest.raises(TableError, match="can't be read"):
        orphans(table)


def test_detached_versions_are_refused(table):
    """Lance lists them nowhere, and its own cleanup deletes their files."""
    table.append(0, 1)
    fragments = write_fragments(pa.Table.from_batches([table.rows(2)]), table.location, mode="append")
    transaction = lance.Transaction(table.open().version, lance.LanceOperation.Append(fragments))
    detached = lance.LanceDataset.commit(table.open(), transaction, detached=True)
    with pytest.raises(FeatureNotSupported, match="detached"):
        orphans(table)
    assert detached.count_rows() == 2
    assert lance.dataset(table.location, version=detached.version).to_table().num_rows == 2


def test_indexes_that_branches_may_need_are_left_alone(table):
    """Which index of main a branch uses is not among what Lance lists."""
    table.append(0, 1, 2)
    table.foreign("index")
    began = table.open().version
    table.open().create_branch("b", began)
    table.open().drop_index("id_idx")
    clean_up(table)
    forget(table, began)
    table.stage(table.rows(9))
    assert set(orphans(table).values()) == {"data"}
    collect(table)
    branch = table.open().checkout_version(("b", None))
    assert "ScalarIndexQuery" in branch.scanner(filter="id = 1").explain_plan()
    assert branch.to_table(filter="id = 1").num_rows == 1


def test_datasets_of_others_with_their_own_layout(tmp_path, table):
    """Manifests named as of old, stable row ids, and a base that is a plain folder of files."""
    shutil.rmtree(table.location)
    rows = pa.Table.from_batches([table.rows(1, 2)])
    base = lance.DatasetBasePath(f"{table.location}/data", name="flat", is_dataset_root=False)
    lance.write_dataset(
        rows,
        table.location,
        enable_v2_manifest_paths=False,
        enable_stable_row_ids=True,
        initial_bases=[base],
        target_bases=["flat"],
    )
    lance.write_dataset(rows, table.location, mode="append")
    assert Path(table.location, "_versions", "2.manifest").exists()
    table.reload()
    staged = table.stage(table.rows(3))
    assert orphans(table) == {staged.files[0].path: "data"}
    collect(table)
    assert table.ids() == [1, 1, 2, 2]


def test_what_lance_does_not_know_is_left_out(table):
    table.append(0, 1)
    location = Path(table.location)
    for path in ("notes.txt", "data/mine.parquet", "data/sub/x.lance", "_indices/readme/x", "_other/x.lance", "x.txn"):
        (location / path).parent.mkdir(parents=True, exist_ok=True)
        (location / path).write_text("mine")
    assert orphans(table) == {}


def test_sidecars_of_blobs_are_left_out(tmp_path, table):
    shutil.rmtree(table.location)
    schema = pa.schema([pa.field("id", pa.int64()), blob_field("b")])
    rows = pa.table([pa.array([1, 2]), blob_array([b"a", b"c" * 6_000_000])], schema=schema)
    lance.write_dataset(rows, table.location, data_storage_version="2.2")
    left = write_fragments(rows, table.location, mode="append", data_storage_version="2.2")
    assert len(list(Path(table.location).glob("data/*/*.blob"))) == 2
    found = table.storage.maintenance(table.storage.catalog().load_table(table.path)).orphans(10**15)
    assert [file.path for file in found] == [f"data/{left[0].files[0].path}"]


def test_ages_and_sizes(table):
    table.append(0, 1)
    staged = table.stage(table.rows(2)).files[0]
    maintenance = table.storage.maintenance(table.info)
    modified = Path(table.location, staged.path).stat().st_mtime_ns // 1_000_000
    assert maintenance.orphans(modified) == []
    (found,) = maintenance.orphans(modified + 1)
    assert (found.path, found.bytes, found.modified_at, found.kind) == (staged.path, staged.bytes, modified, "data")
    assert maintenance.remove_orphans([found]) == [found]
    assert maintenance.remove_orphans([found]) == [found], "what is gone counts as gone"
    assert not Path(table.location, staged.path).exists()
