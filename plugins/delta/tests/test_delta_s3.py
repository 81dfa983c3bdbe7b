"""An object store: the suite's moto, in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import boto3
import pyarrow as pa
import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

import laketier_delta.altering
import laketier_delta.committer
from laketier.maintenance.orphans import collect_orphans, list_orphans
from laketier.spi import Collected, Conflict, IncompatibleTable, Passthrough, Token, WriteMode
from laketier.tiering import TieringRound
from laketier_conformance.stores.atomic import server
from laketier_delta.altering import entry_identity
from laketier_delta.engine import open_table
from laketier_delta.location import Location


@pytest.fixture
def s3() -> Iterator[str]:
    store = server()
    thread = threading.Thread(target=store.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{store.port}"
    store.shutdown()
    thread.join()
    store.server_close()


@pytest.fixture
def bucket(s3: str, support: Any) -> tuple[Any, Any]:
    """A lake in an empty bucket, and a client to look at it."""
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    # moto keeps what other tests put, of other formats too, for as long as the process is there.
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].reset()
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1", **keys)
    client.create_bucket(Bucket="lake")
    storage = {"AWS_ENDPOINT_URL": s3, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    storage |= {key.upper(): value for key, value in keys.items()}
    options = {"storage": Passthrough(storage), "checkpoint_interval": 2}
    return support.DeltaLake("s3://lake/warehouse", options), client


def test_an_endpoint_of_the_environment_is_that_of_the_log_and_of_the_files(bucket, s3, support, monkeypatch):
    """delta-rs takes it from there by itself, and pyarrow would go to Amazon."""
    for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ALLOW_HTTP"):
        monkeypatch.delenv(name, raising=False)
    keys = {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test"}
    for name, value in ({"ENDPOINT_URL": s3, "REGION": "us-east-1"} | keys).items():
        monkeypatch.setenv(f"AWS_{name}", value)
    lake = support.DeltaLake("s3://lake/of-the-environment", {"checkpoint_interval": 2})
    lake.create()
    lake.epoch(0)
    assert support.values(lake.read()) == [0]
    assert lake.committer().open().watermark("p").token.epoch == 0


def test_rounds_on_s3(bucket, support, monkeypatch):
    lake, client = bucket
    # delta-rs prefers it to the endpoint of the options: the log would be there, and the files in the bucket.
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    lake.create()
    lake.create()
    for epoch in range(3):
        lake.epoch(epoch)
    assert support.values(lake.read()) == [0, 1, 2]
    assert lake.committer().open().watermark("p").token.epoch == 2
    committer, rival = lake.committer(), lake.committer()
    stale = committer.open()
    staged = lake.stage(support.ids(8))
    rival.publish(rival.open(), [], support.watermark(0, "q"))
    with pytest.raises(Conflict):
        committer.publish(stale, [staged], None)
    committer.discard([staged])
    lake.epoch(3, support.ids(9), mode=WriteMode.OVERWRITE)
    assert support.values(lake.read()) == [9]
    names = [item["Key"] for item in client.list_objects_v2(Bucket="lake")["Contents"]]
    assert not any(staged.files[0].path in name for name in names)
    assert any(".checkpoint.parquet" in name for name in names)
    assert [str(path) for path in lake.storage.catalog().list_tables()] == ["db.t"]
    lake.storage.catalog().drop_table(support.PATH)
    assert lake.storage.catalog().list_tables() == []


def test_a_drop_on_s3_that_was_cut_off_can_be_asked_for_again(bucket, support, monkeypatch):
    """Without its log, what is left would be no table to drop, and would keep the name from every other."""
    lake, client = bucket
    lake.create()
    lake.epoch(0)
    deleted = []

    class CutOff:
        def __init__(self, filesystem):
            self._filesystem = filesystem

        def __getattr__(self, name):
            if name.startswith("delete"):
                if deleted:
                    raise KeyboardInterrupt
                deleted.append(name)
            return getattr(self._filesystem, name)

    filesystem = Location.filesystem
    monkeypatch.setattr(Location, "filesystem", property(lambda self: CutOff(filesystem.fget(self))))
    with pytest.raises(KeyboardInterrupt):
        lake.storage.catalog().drop_table(support.PATH)
    monkeypatch.undo()
    assert deleted
    lake.storage.catalog().drop_table(support.PATH)
    assert "Contents" not in client.list_objects_v2(Bucket="lake", Prefix="warehouse/db/t/_delta_log")
    lake.create()
    assert support.values(lake.read()) == []


def test_a_commit_whose_entry_others_cleaned_up_at_once_stays(bucket, support, monkeypatch):
    """The entry below it is gone as it is after a drop, and a later checkpoint has the rows of both."""
    lake, client = bucket
    lake.create()
    lake.epoch(0)
    committer, staged = lake.committer(), lake.stage(support.ids(7))
    state, looks = committer.open(), []

    def cleaned(location, version):
        looks.append(version)
        if len(looks) == 2:  # the first one is before the commit
            lake.epoch(1, support.ids(8))
            handle = open_table(location)
            handle.create_checkpoint()
            for old in range(handle.version()):
                for kind in ("json", "checkpoint.parquet"):
                    client.delete_object(Bucket="lake", Key=f"warehouse/db/t/_delta_log/{old:020}.{kind}")
        return entry_identity(location, version)

    for module in (laketier_delta.committer, laketier_delta.altering):
        monkeypatch.setattr(module, "entry_identity", cleaned)
    assert committer.publish(state, [staged], None).rows == 1
    assert looks[:2] == [1, 1]
    assert support.values(lake.read()) == [0, 7, 8]


def test_orphans_on_s3(bucket, support):
    lake, client = bucket
    prefix = "warehouse/db/t/"

    def keys() -> set[str]:
        listed = client.list_objects_v2(Bucket="lake", Prefix=prefix)["Contents"]
        return {item["Key"].removeprefix(prefix) for item in listed if not item["Key"].endswith("/")}

    def rows(*partitions: str) -> pa.Table:
        return pa.table({"id": list(range(len(partitions))), "r": list(partitions)})

    lake.create(pa.schema([("id", pa.int64()), ("r", pa.string())]), "r")
    for epoch in range(3):
        lake.epoch(epoch, rows("a b/ü%20", "=", "plain"))
    lake.epoch(3, rows("plain"), mode=WriteMode.OVERWRITE)
    before = keys()
    staged = lake.stage(rows("a b/ü%20", "dead"))
    dead = {file.path for file in staged.files}
    client.put_object(Bucket="lake", Key=f"{prefix}r=dead/mine.parquet", Body=b"x")
    time.sleep(1.1)  # the store's times are whole seconds
    found = list_orphans(lake.storage, lake.table, grace=timedelta(0)).orphans
    assert {file.path for file in found if file.kind == "data"} == dead
    assert dead < keys()
    assert {file.bytes for file in found if file.kind == "data"} == {file.bytes for file in staged.files}
    collected = collect_orphans(lake.storage, lake.table, grace=timedelta(0))
    assert set(collected.removed) == set(found)
    gone = {file.path for file in found}
    assert before - keys() == {path for path in gone if path.startswith("_laketier/p/")}
    assert "r=dead/mine.parquet" in keys()
    assert not gone & keys()
    assert lake.storage.maintenance(lake.table).remove_orphans(found) == list(found)
    with pytest.raises(Collected):
        TieringRound(lake.factory(), token=Token("q", "run", 0)).commit([staged])
    assert lake.read(snapshot_id=3).num_rows == 9
    assert lake.epoch(4, rows("plain")).rows == 1
    assert lake.read().num_rows == 2


def test_a_table_is_made_where_who_asked_for_the_time_was_killed(bucket, support):
    lake, client = bucket
    for name, is_taken in (("clock", True), ("", True), ("notes.txt", False)):
        client.put_object(Bucket="lake", Key=f"warehouse/db/t/_laketier/{name}", Body=b"")
        if not is_taken:
            with pytest.raises(IncompatibleTable, match="_laketier"):
                lake.create()
        else:
            assert lake.create().snapshot_id == 0
            lake.storage.catalog().drop_table(support.PATH)


def test_a_version_on_s3_names_one_state(bucket, support):
    """Also where a table was made anew within the second that a listing tells, with entries of the same names."""
    lake = replace(bucket[0], warehouse="s3://lake/versions")  # moto keeps the tables of other tests in this process
    path, seen = lake.create().path, []
    for run in range(2):
        for epoch in range(2):
            lake.epoch(epoch, support.ids(run))
            version = lake.storage.catalog().table_version(path)
            assert version is not None
            assert version not in seen
            assert lake.storage.catalog().table_version(path, version) == version
            assert all(lake.storage.catalog().table_version(path, known) == version for known in seen)
            seen.append(version)
        lake.storage.catalog().drop_table(path)
        assert lake.storage.catalog().table_version(path, seen[-1]) is None
        lake.create()
