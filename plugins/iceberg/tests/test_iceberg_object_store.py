"""A warehouse in an object store, by pyiceberg's own FileIO properties, against a server that speaks S3."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3
import pytest
from moto.server import ThreadedMotoServer

from laketier.spi import (
    LakeStorageConfig,
    PartitionField,
    Passthrough,
    ScanRequest,
    TableDescriptor,
    TablePath,
    Token,
    WriterInitContext,
    attempt_began_at,
    new_attempt_id,
)
from laketier.tiering import TieringRound
from laketier_iceberg.files import Files
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.storage import IcebergStorage

SECRET = "testing"


def _client(url: str) -> Any:
    return boto3.client(
        "s3", endpoint_url=url, aws_access_key_id="testing", aws_secret_access_key="testing", region_name="us-east-1"
    )


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    # Its buckets belong to the process: those of other plugins' tests are still there.
    urlopen(Request(f"{url}/moto-api/reset", method="POST")).close()
    _client(url).create_bucket(Bucket="lake")
    yield url
    server.stop()


@pytest.fixture
def storage(endpoint: str, tmp_path: Path) -> IcebergStorage:
    catalog = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.sqlite",
        "s3.endpoint": endpoint,
        "s3.access-key-id": "testing",
        "s3.secret-access-key": SECRET,
        "s3.region": "us-east-1",
        "s3.force-virtual-addressing": "false",
    }
    return IcebergStorage(LakeStorageConfig("s3://lake/warehouse", IcebergOptions(catalog=Passthrough(catalog))))


def test_rounds_and_reads_on_s3(endpoint: str, storage: IcebergStorage, events: Any) -> None:
    wanted = TableDescriptor(events.info.schema, (PartitionField("s"),))
    info = storage.catalog().create_table(TablePath("db", "t"), wanted)
    assert info.location.startswith("s3://lake/warehouse")
    factory = pickle.loads(pickle.dumps(storage.tiering_factory(info)))  # noqa: S301 - as Spark sends it
    assert SECRET not in repr(factory)
    for epoch in range(2):
        writer = factory.create_writer(WriterInitContext(new_attempt_id()))
        writer.write(events.batch(epoch * 10, epoch * 10 + 10))
        TieringRound(factory, token=Token("p", "run", epoch)).commit([writer.complete()])
    source = pickle.loads(pickle.dumps(storage.source(info)))  # noqa: S301 - as Spark sends it
    plan = source.plan(ScanRequest())
    found = [i for split in plan.splits for b in source.read(split, plan.schema) for i in b["id"].to_pylist()]
    assert sorted(found) == list(range(20))
    assert all(split.plain_parquet is not None and split.plain_parquet.startswith("s3://") for split in plan.splits)
    listed = {split.plain_parquet for split in plan.splits}
    assert _data_files(endpoint) == listed
    writer = factory.create_writer(WriterInitContext(new_attempt_id()))
    writer.write(events.batch(0, 10))
    staged = writer.complete()
    assert len(_data_files(endpoint)) == len(listed) + 3
    factory.create_committer(events.committer()._context).discard([staged])
    assert _data_files(endpoint) == listed


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_orphans_on_s3(endpoint: str, storage: IcebergStorage, events: Any, scheme: str) -> None:
    properties = {"write.data.path": f"{scheme}://lake/warehouse/orphans/{scheme}/data"}
    wanted = TableDescriptor(events.info.schema, (PartitionField("s"),), properties=properties)
    path = TablePath("orphans", scheme)  # the server forgets nothing between tests
    location = storage.catalog().create_table(path, wanted).location
    assert location == f"s3://lake/warehouse/orphans/{scheme}"
    table = type(events)(storage, info := storage.catalog().load_table(path), storage.tiering_factory(info))
    table.round(table.token(0), table.batch(0, 10))
    table.round(table.token(1), table.batch(10, 20))
    staged = table.stage(table.batch(90, 99))
    dead = {
        "data/s=a#b?c=d/0dead.parquet": "data",
        "data/s=%C3%A4 +/1dead.parquet": "data",
        "metadata/0dead-m0.avro": "manifest",
    }
    for key in (*dead, "data/s=a", "data/s=a#b"):
        _client(endpoint).put_object(Bucket="lake", Key=f"warehouse/orphans/{scheme}/{key}", Body=b"1234")
    _client(endpoint).put_object(Bucket="lake", Key=f"warehouse/orphans/{scheme}/data/s=a", Body=b"another")
    with Files(table.table().io.properties).open(f"{location}/data/s=a#b?c=d/0dead.parquet") as opened:
        assert opened.read() == b"1234", "not what is named by the part before the #"
    maintenance = storage.maintenance(info)
    assert maintenance.orphans(attempt_began_at(staged.attempt)) == [], "no file looks older than its attempt"
    found = maintenance.orphans(time.time_ns() // 1_000_000 + 60_000)
    expected = dead | {file.path: "data" for file in staged.files}
    assert {file.path: file.kind for file in found} == expected
    assert {file.bytes for file in found if file.path in dead} == {4}
    assert maintenance.remove_orphans(found) == found
    assert maintenance.remove_orphans(found) == found
    assert maintenance.orphans(time.time_ns() // 1_000_000 + 60_000) == []
    table.round(table.token(2), table.batch(20, 30))
    assert table.ids() == list(range(30))
    listed = _client(endpoint).list_objects_v2(Bucket="lake", Prefix="warehouse/orphans/")["Contents"]
    keys = {entry["Key"] for entry in listed}
    assert {f"warehouse/orphans/{scheme}/data/s=a", f"warehouse/orphans/{scheme}/data/s=a#b"} <= keys


def _data_files(endpoint: str) -> set[str]:
    found = _client(endpoint).list_objects_v2(Bucket="lake", Prefix="warehouse/db/")["Contents"]
    return {f"s3://lake/{entry['Key']}" for entry in found if entry["Key"].endswith(".parquet")}


def test_a_version_on_s3_names_one_state(storage: IcebergStorage, events: Any) -> None:
    """The catalog's row names a metadata file, and each commit makes another one: S3 is not asked."""
    path, seen = TablePath("db", "t"), []
    catalog = storage.catalog()
    for _ in range(2):
        info = catalog.create_table(path, TableDescriptor(events.info.schema))
        for epoch in range(2):
            TieringRound(storage.tiering_factory(info), token=Token("p", "run", epoch)).commit([])
            version = catalog.table_version(path)
            assert version is not None
            assert version not in seen
            assert SECRET not in version
            assert catalog.table_version(path, version) == version
            seen.append(version)
        catalog.drop_table(path)
        assert catalog.table_version(path, seen[-1]) is None
