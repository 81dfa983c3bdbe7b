"""What may lie in the place of a new dataset, and what is somebody else's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from laketier.kit import failpoints
from laketier.spi import (
    CommitterInitContext,
    Conflict,
    CorruptTable,
    IncompatibleTable,
    LakeStorageConfig,
    SetProperty,
    StorageError,
    TableDescriptor,
    TableNotFound,
    TablePath,
    WriterInitContext,
)
from laketier.tiering import TieringRound
from laketier_lance import dataset as dataset_module
from laketier_lance.leftovers import foreign
from laketier_lance.options import LanceOptions
from laketier_lance.plugin import LancePlugin

SCHEMA = pa.schema([pa.field("id", pa.int64())])
PATH = TablePath("db", "t")
ATTEMPT = "01a22230380c7a028776b948877133ca"
OURS = (
    f"data/{ATTEMPT}-00000.lance",
    f"data/{ATTEMPT}-empty.lance",
    "data/0101101011010000010101115907574626a2a4e9c5c96fb9ad.lance",
    "data/2ff78f99-0e73-49dc-a151-39848808d766.lance",
    "data/.tmpAbc",
    "data/0101/17.blob",
    "tree/b/_versions/1.manifest",
    "tree/feature/x/data/0101101011010000010101115907574626a2a4e9c5c96fb9ad.lance",
    "_versions/whatever",
    "_laketier/clock",
)
THEIRS = (
    "data",
    "data/notes.txt",
    "data/customers.lance",
    "data/2026/x.parquet",
    "data/photos.blob",
    "data/0101/17.blob.txt",
    "tree/oak.txt",
    "tree/data/oak.txt",
    "_laketier/notes.txt",
)


def test_what_lance_and_laketier_leave_is_told_from_the_rest() -> None:
    assert foreign([*THEIRS, *OURS]) == sorted(THEIRS)


def test_what_lance_writes_is_known_as_its_own(tmp_path: Path) -> None:
    """By pylance itself: rows, a deletion, an index, a branch, a compaction."""
    rows = pa.table({"id": pa.array(range(10), pa.int64())})
    where = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(rows, where, max_rows_per_file=3)
    dataset.delete("id = 1")
    dataset.create_scalar_index("id", "BTREE")
    branch = dataset.create_branch("feature/x", None)
    lance.write_dataset(rows, branch, mode="append")
    lance.dataset(where).optimize.compact_files()
    found = [path.relative_to(where).as_posix() for path in Path(where).rglob("*") if path.is_file()]
    assert len(found) > 10
    assert foreign(found) == []


@pytest.mark.every(2)
@pytest.mark.parametrize("name", [name for name in THEIRS if not name.startswith("_")])
def test_a_place_with_files_of_others_is_refused_and_left(tmp_path: Path, name: str) -> None:
    catalog = LancePlugin().create_storage(LakeStorageConfig(str(tmp_path), LanceOptions())).catalog()
    theirs = tmp_path / "db" / "t.lance" / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    with pytest.raises(IncompatibleTable, match=name):
        catalog.create_table(PATH, TableDescriptor(SCHEMA))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [theirs]


def test_a_place_with_what_a_late_writer_left_is_taken(tmp_path: Path) -> None:
    """Its table was dropped meanwhile."""
    storage: Any = LancePlugin().create_storage(LakeStorageConfig(str(tmp_path), LanceOptions()))
    writer = storage.tiering_factory(storage.catalog().create_table(PATH, TableDescriptor(SCHEMA))).create_writer(
        WriterInitContext(ATTEMPT)
    )
    storage.catalog().drop_table(PATH)
    writer.write(pa.record_batch([pa.array([1], pa.int64())], schema=SCHEMA))
    writer.complete()
    assert list((tmp_path / "db" / "t.lance" / "data").iterdir())
    storage.catalog().create_table(PATH, TableDescriptor(SCHEMA))
    assert storage.catalog().list_tables() == [PATH]


def _catalog(folder: Path) -> Any:
    return LancePlugin().create_storage(LakeStorageConfig(str(folder), LanceOptions())).catalog()


def _is_refused(folder: Path) -> None:
    catalog = _catalog(folder)
    for look in (catalog.load_table, lambda path: catalog.create_table(path, TableDescriptor(SCHEMA))):
        with pytest.raises(CorruptTable, match="the dataset's list of versions is gone"):
            look(PATH)


def test_a_dataset_of_laketier_without_its_versions_is_lost(tmp_path: Path) -> None:
    """One without rows is not: it can be made again."""
    storage: Any = LancePlugin().create_storage(LakeStorageConfig(str(tmp_path), LanceOptions()))
    catalog, place = storage.catalog(), tmp_path / "db" / "t.lance"
    catalog.create_table(PATH, TableDescriptor(SCHEMA))
    shutil.rmtree(place / "_versions")
    with pytest.raises(TableNotFound):
        catalog.load_table(PATH)
    factory = storage.tiering_factory(catalog.create_table(PATH, TableDescriptor(SCHEMA)))
    writer = factory.create_writer(WriterInitContext(ATTEMPT))
    writer.write(pa.record_batch([pa.array([1], pa.int64())], schema=SCHEMA))
    TieringRound(factory).commit([writer.complete()])
    os.rename(place / "_versions", tmp_path / "aside")
    before = sorted(place.rglob("*"))
    _is_refused(tmp_path)
    assert sorted(place.rglob("*")) == before
    os.rename(tmp_path / "aside", place / "_versions")
    assert catalog.load_table(PATH).snapshot_id == 2


def test_a_dataset_of_others_without_its_versions_is_lost(tmp_path: Path) -> None:
    """Also one that had its rows at once."""
    place = tmp_path / "db" / "t.lance"
    lance.write_dataset(pa.table({"id": pa.array([1], pa.int64())}), str(place))
    shutil.rmtree(place / "_versions")
    _is_refused(tmp_path)
    shutil.rmtree(place / "_transactions")
    _is_refused(tmp_path)


def test_a_store_that_lists_no_rows_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lance's own error would be one of a program, and no word of a table."""

    def fails(*_: object) -> None:
        raise RuntimeError("Generic S3 error: no answer")

    monkeypatch.setattr(dataset_module, "left_rows", fails)
    with pytest.raises(StorageError, match="no answer"):
        _catalog(tmp_path).load_table(PATH)


def test_a_commit_beside_a_drop_leaves_no_lost_dataset(tmp_path: Path) -> None:
    """Lance makes the folders anew, and what the task staged is there, too."""
    storage: Any = LancePlugin().create_storage(LakeStorageConfig(str(tmp_path), LanceOptions()))
    catalog, place = storage.catalog(), tmp_path / "db" / "t.lance"
    factory = storage.tiering_factory(catalog.create_table(PATH, TableDescriptor(SCHEMA)))
    committer = factory.create_committer(CommitterInitContext("c"))
    committer.publish(committer.open(), [], None)
    writer = factory.create_writer(WriterInitContext(ATTEMPT))
    writer.write(pa.record_batch([pa.array([1], pa.int64())], schema=SCHEMA))
    staged, state = writer.complete(), committer.open()
    kept = tmp_path / "kept"
    os.rename(place / "data", kept)

    def drop(step: str) -> None:
        if step == "publish.before_commit":
            catalog.drop_table(PATH)
            place.mkdir()
            os.rename(kept, place / "data")

    os.link(kept / staged.files[0].path.rpartition("/")[2], tmp_path / "staged")
    (place / "data").mkdir()
    os.link(tmp_path / "staged", place / staged.files[0].path)
    with failpoints.observed(drop), pytest.raises(Conflict, match="dropped meanwhile"):
        committer.publish(state, [staged], None)
    assert list((place / "data").iterdir())
    with pytest.raises(TableNotFound):
        catalog.load_table(PATH)
    assert catalog.create_table(PATH, TableDescriptor(SCHEMA)).snapshot_id == 1


def test_a_table_that_is_dropped_while_it_is_committed_to_is_told_as_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where Lance fails for that. Nobody has to find out whether the rows landed."""
    storage: Any = LancePlugin().create_storage(LakeStorageConfig(str(tmp_path), LanceOptions()))
    catalog, place = storage.catalog(), tmp_path / "db" / "t.lance"
    factory = storage.tiering_factory(catalog.create_table(PATH, TableDescriptor(SCHEMA)))
    writer = factory.create_writer(WriterInitContext(ATTEMPT))
    writer.write(pa.record_batch([pa.array([1], pa.int64())], schema=SCHEMA))
    staged = writer.complete()

    def fails(dataset: Any, transaction: Any, **_: Any) -> None:
        catalog.drop_table(PATH)
        (place / "_transactions").mkdir(parents=True)
        (place / "_transactions" / f"{dataset.version}-{transaction.uuid}.txn").touch()
        raise OSError("No such file or directory")

    monkeypatch.setattr(lance.LanceDataset, "commit", fails)
    with pytest.raises(TableNotFound):
        TieringRound(factory).commit([staged])
    assert list((place / "_transactions").iterdir()) == []


def test_properties_of_a_table_that_is_dropped_meanwhile_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance makes the folders anew for their commit."""
    catalog, place = _catalog(tmp_path), tmp_path / "db" / "t.lance"
    catalog.create_table(PATH, TableDescriptor(SCHEMA))
    real = lance.LanceDataset.commit

    def late(*given: Any, **more: Any) -> Any:
        catalog.drop_table(PATH)
        return real(*given, **more)

    monkeypatch.setattr(lance.LanceDataset, "commit", late)
    with pytest.raises(Conflict, match="dropped meanwhile"):
        catalog.alter_table(PATH, [SetProperty("a", "1", None)])
    assert [path for path in place.rglob("*") if path.is_file() and "hint" not in path.name] == []
