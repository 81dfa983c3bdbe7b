"""Folders of a bucket become tables where they lie, and tables whose manifests were lost are made again."""

from __future__ import annotations

import io
import json
import logging
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from localfile_s3 import S3Table

from faulty_s3 import BUCKET, FaultyS3
from laketier import adopt
from laketier.kit import failpoints
from laketier.spi import (
    ConfigError,
    Conflict,
    CorruptTable,
    IncompatibleTable,
    LaketierError,
    OutsideTable,
    Passthrough,
    RolledBack,
    StorageError,
    TableNotFound,
    WriteMode,
)
from laketier_localfile.options import FileFormatName


@pytest.fixture
def folder(s3: FaultyS3, storage: Passthrough) -> S3Table:
    """A place without a table."""
    return S3Table.of(s3, storage, create=False)


@pytest.fixture
def table(s3: FaultyS3, storage: Passthrough) -> S3Table:
    return S3Table.of(s3, storage)


def put(table: S3Table, name: str, data: bytes) -> None:
    table.s3.client.put_object(Bucket=BUCKET, Key=f"{table.location}/{name}", Body=data)


def parquet(*ids: int, **columns: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), **columns}), out)
    return out.getvalue()


def delete(table: S3Table, start: str) -> None:
    """All keys of the table that begin so."""
    for key in table.all_keys():
        if key.startswith(start):
            table.s3.client.delete_object(Bucket=BUCKET, Key=f"{table.location}/{key}")


def adopted(table: S3Table, **options: Any) -> Any:
    return table.storage.adoption().adopt(table.path, **options)


def rebuilt(table: S3Table, **options: Any) -> Any:
    return table.storage.adoption().rebuild(table.path, **options)


# -- adopt -------------------------------------------------------------------------------------------------------------


def test_a_prefix_of_parquet_files_becomes_a_table(folder: S3Table) -> None:
    put(folder, "day=1/a.parquet", parquet(1, 2, region=["x", "y"]))
    put(folder, "day=2/ü b+c.parquet", parquet(3))
    put(folder, "_SUCCESS", b"")
    put(folder, "notes.txt", b"no rows")
    before = folder.all_keys()
    made = adopted(folder, partitions=True)
    assert (made.made, made.files, made.rows) == (True, 2, 3)
    assert made.left_out == {"notes.txt": "its name is that of no data file"}
    assert {key for key in folder.all_keys() if not key.startswith("_")} == {key for key in before if key[0] != "_"}
    assert [field.name for field in made.table.schema] == ["id", "region", "day"]
    assert folder.read_ids() == folder.plain_ids() == [1, 2, 3]
    assert sorted(folder.scan().column("day").to_pylist()) == [1, 1, 2]
    assert adopted(folder, partitions=True).made is False
    folder.round(0, [{"id": 4, "region": "z", "day": 2}])
    assert folder.read_ids() == folder.plain_ids() == [1, 2, 3, 4]
    folder.round(1, [{"id": 5, "region": None, "day": 3}], mode=WriteMode.OVERWRITE)
    assert folder.read_ids() == folder.plain_ids() == [5]
    assert folder.read_ids(snapshot_id=1) == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["json", "csv", "arrow"])
def test_a_prefix_of_other_files(s3: FaultyS3, storage: Passthrough, name: str) -> None:
    folder = S3Table.of(s3, storage, create=False)
    rows = [{"id": i, "region": f"r{i}"} for i in range(3)]
    if name == "json":
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    elif name == "csv":
        data = ("id,region\n" + "".join(f"{row['id']},{row['region']}\n" for row in rows)).encode()
    else:
        out = io.BytesIO()
        with pa.ipc.new_file(out, folder.schema) as writer:
            writer.write_table(pa.Table.from_pylist(rows, folder.schema))
        data = out.getvalue()
    put(folder, f"a.{name}", data)
    assert adopted(folder).rows == 3
    folder.round(0, [{"id": 7, "region": "x"}])
    assert folder.read_ids() == [0, 1, 2, 7]
    assert folder.read_by_others()["DuckDB"] == [0, 1, 2, 7]


def test_by_its_uri(folder: S3Table, storage: Passthrough) -> None:
    put(folder, "a.parquet", parquet(1, 2, region=["x", "y"]))
    options = {f"lake.localfile.storage.{key}": value for key, value in storage.items()}
    made = adopt(f"s3://{BUCKET}/{folder.location}/", lake_format="localfile", options=options)
    assert (made.rows, made.table.location) == (2, f"s3://{BUCKET}/{folder.location}")
    with pytest.raises(ConfigError, match="has no warehouse above"):
        adopt("s3://bucket/table", lake_format="localfile", options=options)


def test_what_is_no_folder_of_files_is_refused(folder: S3Table, s3: FaultyS3, storage: Passthrough) -> None:
    with pytest.raises(TableNotFound, match="there is no such folder"):
        adopted(folder)
    put(folder, "a.parquet", b"PAR1 no file")
    with pytest.raises(LaketierError, match="1 of 1 files can't be read"):
        adopted(folder)
    put(folder, "a.parquet", parquet(1))
    put(folder, "sub/_delta_log/00000.json", b"{}")
    with pytest.raises(IncompatibleTable, match="the folder is a table of Delta Lake"):
        adopted(folder)
    delete(folder, "sub/")
    put(folder, "sub/metadata/v1.metadata.json", b"{}")
    with pytest.raises(IncompatibleTable, match="the folder is a table of Iceberg"):
        adopted(folder)
    delete(folder, "sub/")
    s3.client.put_object(Bucket=BUCKET, Key=f"{folder.location.parent}/_delta_log/0.json", Body=b"{}")
    with pytest.raises(IncompatibleTable, match="lies within a table"):
        adopted(folder)
    s3.client.delete_object(Bucket=BUCKET, Key=f"{folder.location.parent}/_delta_log/0.json")
    put(folder, "b\\c.parquet", parquet(2))
    with pytest.raises((OutsideTable, StorageError)):
        adopted(folder)
    delete(folder, "b")
    put(folder, "x//y.parquet", parquet(2))
    with pytest.raises((OutsideTable, StorageError), match=r"key that is no path|can't be a file"):
        adopted(folder)
    delete(folder, "x")
    assert adopted(folder).rows == 1


@pytest.mark.parametrize(
    "key",
    [
        "delete_delta_0000002_0000002/bucket_00000",
        "base_0000001/bucket_00000",
        "ducklake-01923f3a-1b2c-7d3e-8f40-123456789abc-delete.parquet",
        "metadata/00001-a.metadata.json",
        ".hoodie/hoodie.properties",
    ],
)
def test_the_files_of_a_table_alone_are_refused(folder: S3Table, s3: FaultyS3, key: str) -> None:
    """Rows that were deleted would come back."""
    put(folder, "a.parquet", parquet(1))
    key = f"{folder.location.parent}/{key}"
    s3.client.put_object(Bucket=BUCKET, Key=key, Body=b"{}")
    try:
        with pytest.raises(IncompatibleTable, match="the folder lies within a table"):
            adopted(folder)
    finally:
        s3.client.delete_object(Bucket=BUCKET, Key=key)


def test_another_folder_of_that_name_is_no_table(folder: S3Table, s3: FaultyS3) -> None:
    """And what lies below it is not listed."""
    put(folder, "a.parquet", parquet(1))
    key = f"{folder.location.parent}/metadata/a/b/v1.metadata.json"
    s3.client.put_object(Bucket=BUCKET, Key=key, Body=b"{}")
    try:
        assert adopted(folder).rows == 1
    finally:
        s3.client.delete_object(Bucket=BUCKET, Key=key)


def test_a_file_that_changes_meanwhile(folder: S3Table) -> None:
    put(folder, "a.parquet", parquet(1))

    def at(name: str) -> None:
        if name == "create.before_table_file":
            put(folder, "a.parquet", parquet(2))

    with failpoints.observed(at), pytest.raises(IncompatibleTable, match="1 files changed"):
        adopted(folder)
    with pytest.raises(TableNotFound):
        folder.storage.catalog().load_table(folder.path)
    assert adopted(folder).rows == 1
    assert folder.read_ids() == [2]


# -- rebuild -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", list(FileFormatName)[:2])
def test_lost_manifests_are_made_again(s3: FaultyS3, storage: Passthrough, file_format: FileFormatName) -> None:
    table = S3Table.of(s3, storage, file_format=file_format, fold_files=2)
    for epoch in range(4):
        table.round(epoch)
    before = table.read_ids()
    delete(table, "_laketier_manifests/")
    with pytest.raises(CorruptTable, match="manifests are gone") as error:
        table.info  # noqa: B018
    assert "laketier schema rebuild" in str(error.value.fix)
    with pytest.raises(IncompatibleTable, match="whose manifests are gone"):
        adopted(table)
    made = rebuilt(table)
    assert made.rows == len(before)
    assert any("watermarks of all pipelines are lost" in line for line in made.told)
    assert table.read_ids() == before
    with pytest.raises(RolledBack, match="not known which rows"):
        table.round(4)


def test_a_lost_table_file_costs_nothing(table: S3Table) -> None:
    for epoch in range(3):
        table.round(epoch)
    delete(table, "_laketier_manifests/table.json")
    made = rebuilt(table)
    assert made.told == ("Only table.json was lost, and is written again: history and watermarks are as they were.",)
    table.round(3)
    assert table.read_ids() == table.plain_ids() == [epoch * 1000 + i for epoch in range(4) for i in range(4)]
    with pytest.raises(IncompatibleTable, match="manifests are whole"):
        rebuilt(table)


def damage(table: S3Table) -> None:
    """A manifest of the middle."""
    table.s3.client.put_object(Bucket=BUCKET, Key=f"{table.location}/{table.log.name(1)}", Body=b"damaged")


@pytest.mark.parametrize("noted", [False, True])
def test_a_writer_that_slept_while_the_table_was_rebuilt(table: S3Table, noted: bool) -> None:
    """It is told that its table is gone: a key of the old one can be taken, and is given back. ``noted``: another one
    that slept wrote the head file of the old table anew."""
    table.round(0)
    table.round(1)
    committer = table.committer()
    state, staged = committer.open(), table.stage(table.ids(9))
    head = f"{table.log.home}/head.json"
    noted_before = table.log.store.read(head)
    seen: list[str] = []

    def at(name: str) -> None:
        if name == "publish.before_manifest" and not seen:
            seen.append(name)
            damage(table)
            with pytest.raises(IncompatibleTable, match="1 files are staged"):
                rebuilt(table)
            rebuilt(table, leave_staged=True)
            if noted:
                put(table, head, noted_before)

    with failpoints.observed(at), pytest.raises(Conflict, match="dropped meanwhile"):
        committer.publish(state, [staged], None)
    assert seen
    assert table.read_ids() == table.plain_ids() == [0, 1, 2, 3, 1000, 1001, 1002, 1003]
    assert [file.path for file in staged.files] == [key for key in table.all_keys() if key.startswith("__in_progress/")]


def test_a_commit_that_lands_just_before_a_rebuild(table: S3Table) -> None:
    """Its files are still staged, so the rebuild is refused, and counts them once they are in place."""
    table.round(0)
    table.round(1)
    committer = table.committer()
    state, staged = committer.open(), table.stage(table.ids(2))

    def at(name: str) -> None:
        if name == "publish.after_manifest_before_renames":
            damage(table)
            with pytest.raises(IncompatibleTable, match="1 files are staged"):
                rebuilt(table)

    with failpoints.observed(at):
        committer.publish(state, [staged], None)
    assert rebuilt(table).rows == 12
    assert table.read_ids() == table.plain_ids() == [epoch * 1000 + i for epoch in range(3) for i in range(4)]


def test_a_rebuild_that_is_killed_in_the_middle(table: S3Table) -> None:
    for epoch in range(3):
        table.round(epoch)
    damage(table)

    def at(name: str) -> None:
        if name == "rebuild.after_move_aside":
            raise KeyboardInterrupt

    with failpoints.observed(at), pytest.raises(KeyboardInterrupt):
        rebuilt(table)
    with pytest.raises(CorruptTable, match="manifests are gone"):
        table.info  # noqa: B018
    assert rebuilt(table).rows == 12
    assert table.read_ids() == table.plain_ids() == [epoch * 1000 + i for epoch in range(3) for i in range(4)]


def test_what_was_superseded_is_not_rebuilt(table: S3Table) -> None:
    """An overwrite copies what it takes away, and then deletes it. A killed one leaves both."""
    table.round(0)
    [old] = [key for key in table.all_keys() if key.endswith(".parquet")]
    data = table.s3.client.get_object(Bucket=BUCKET, Key=f"{table.location}/{old}")["Body"].read()
    table.round(1, [{"id": 7, "region": "x"}], mode=WriteMode.OVERWRITE)
    put(table, old, data)
    delete(table, "_laketier_manifests/")
    made = rebuilt(table)
    assert made.left_out == {old: "it was superseded"}
    assert table.read_ids() == [7]


# -- without manifests -------------------------------------------------------------------------------------------------


def test_who_asks_reads_it_by_inference(table: S3Table, caplog: pytest.LogCaptureFixture) -> None:
    table.round(0)
    delete(table, "_laketier_manifests/")
    lenient = replace(table, options=replace(table.options, require_metadata=False))
    with caplog.at_level(logging.WARNING):
        assert lenient.read_ids() == [0, 1, 2, 3]
    assert "is read by inference" in caplog.text
    with pytest.raises(CorruptTable, match="only its rows can be read"):
        lenient.stage(lenient.ids(1))
    with pytest.raises(CorruptTable, match="manifests are gone"):
        table.read_ids()
