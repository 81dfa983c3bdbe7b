"""Tables in S3: moto's, over HTTP and behind one lock, with faults where they are asked for."""

from __future__ import annotations

import json
import logging
import pickle
import sys
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from localfile_s3 import S3Table
from typer.testing import CliRunner

from faulty_s3 import BUCKET, KEY, REGION, Fault, FaultyS3
from laketier.cli.app import app
from laketier.kit.parquet import Compression
from laketier.maintenance.orphans import collect_orphans, list_orphans
from laketier.spi import (
    AddColumn,
    ConfigError,
    Conflict,
    CorruptTable,
    FeatureNotSupported,
    IncompatibleTable,
    LakeStorageConfig,
    Leaf,
    Op,
    Passthrough,
    StagedFileLost,
    StorageError,
    TableNotFound,
    TablePath,
    Token,
    WriteMode,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome, TieringRound
from laketier_localfile.options import FileFormatName, LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.s3 import client

MANIFEST = ".json"
SECRET = "a-secret-of-the-user"


@pytest.fixture
def make(s3: FaultyS3, storage: Passthrough) -> Callable[..., S3Table]:
    """Makes tables, each in a warehouse of its own."""

    def made(**options: Any) -> S3Table:
        return S3Table.of(s3, storage, **options)

    return made


@pytest.fixture
def table(make: Callable[..., Any]) -> Any:
    return make()


def ids(*epochs: int) -> list[int]:
    return [epoch * 1000 + i for epoch in epochs for i in range(4)]


# -- the way of a table ------------------------------------------------------------------------------------------------


def test_a_life_in_s3(s3: FaultyS3, table: Any) -> None:
    for epoch in range(3):
        assert table.round(epoch).snapshot_id == epoch + 1
    assert table.round(2, []).outcome is not RoundOutcome.PUBLISHED, "the epoch is there already"
    assert table.read_ids() == table.plain_ids() == ids(0, 1, 2)
    assert not any(key.startswith("__in_progress/") for key in table.all_keys())
    table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("note", pa.string()))])
    table.round(3, [{"id": 7, "region": "x"}], mode=WriteMode.OVERWRITE)
    assert table.read_ids() == table.plain_ids() == [7]
    assert table.scan().column("note").to_pylist() == [None]
    assert table.read_ids(snapshot_id=2) == ids(0, 1), "superseded files stay for time travel"
    assert [info.operation for info in table.storage.history(table.info).snapshots(3)] == [
        "overwrite",
        "alter",
        "append",
    ]
    changes = table.storage.changes(table.info)
    plan = changes.plan(2, 4)
    assert sum(split.rows for split in plan.splits) == 8
    other = replace(table, path=TablePath("db", "other"))
    other.create()
    assert table.storage.catalog().list_tables() == [table.path, other.path]
    assert table.storage.catalog().list_tables("none") == []
    table.storage.catalog().drop_table(table.path)
    assert table.all_keys() == set()
    assert table.storage.catalog().list_tables() == [other.path]
    with pytest.raises(TableNotFound):
        table.storage.catalog().drop_table(table.path)


def test_partitions_upserts_and_folds(s3: FaultyS3, make: Callable[..., Any]) -> None:
    table = make(partition_by=("region",), primary_key=("id",), fold_files=2)
    for epoch in range(4):
        table.round(epoch, [{"id": epoch, "region": "a/b ü=%"}, {"id": 10 + epoch, "region": None}])
    assert table.read_ids() == table.plain_ids() == [0, 1, 2, 3, 10, 11, 12, 13]
    folders = {key.partition("/")[0] for key in table.all_keys() if key.endswith(".parquet")}
    assert folders == {"region=a%2Fb ü%3D%25", "region=__HIVE_DEFAULT_PARTITION__"}
    only = table.scan(filters=(Leaf("region", Op.EQ, "a/b ü=%"),), columns=("id",))
    assert sorted(only.column("id").to_pylist()) == [0, 1, 2, 3]
    assert any(entry.startswith("__superseded/") for entry in table.all_keys()), "small files were folded"


@pytest.mark.parametrize("name", [FileFormatName.JSON, FileFormatName.ARROW, FileFormatName.VORTEX])
def test_other_file_formats(make: Callable[..., Any], name: FileFormatName) -> None:
    table = make(file_format=name, fold_files=1)
    table.round(0)
    table.round(1)
    table.round(2)
    assert table.read_ids() == ids(0, 1, 2)
    assert any(key.startswith("__superseded/") for key in table.all_keys()), "small files were folded"
    assert all(found == ids(0, 1, 2) for found in table.read_by_others().values())


def test_addresses_with_the_bucket_in_the_host(s3: FaultyS3, storage: Passthrough) -> None:
    """The store is reached through a proxy, so that the host needs no name here."""
    host = f"{BUCKET}.s3.us-east-1.amazonaws.com"
    hosted = {"endpoint": f"http://{host}", "virtual_hosted_style_request": "true", "proxy_url": s3.url}
    table = S3Table.of(s3, Passthrough({**storage, **hosted}), create=False)
    hosts: set[str] = set()
    s3.meddle(lambda method, path, environ: hosts.add(environ["HTTP_HOST"]))
    table.create()
    table.round(0)
    assert table.read_ids() == ids(0)
    s3.meddle(None)
    assert hosts == {host}
    assert S3Table.plain_ids(table) == ids(0)


def test_columns_are_inferred_from_a_prefix(s3: FaultyS3, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`laketier schema infer` takes what the environment says of the store."""
    table.round(0)
    told = {"ENDPOINT_URL": s3.url, "REGION": REGION, "ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": KEY}
    for name, value in told.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    found = CliRunner().invoke(app, ["schema", "infer", f"s3://{BUCKET}/{table.location}", "--json"])
    assert found.exit_code == 0, found.output
    assert list(json.loads(found.output)["columns"]) == ["id", "region"]


def test_wide_files_are_read_by_ranges(s3: FaultyS3, make: Callable[..., Any]) -> None:
    schema = pa.schema([("id", pa.int64()), *((f"c{i}", pa.binary()) for i in range(8))])
    table = make(schema=schema, compression=Compression.NONE)
    rows = 1500
    noise = [uuid.uuid4().bytes * 64 for _ in range(rows)]
    batch = pa.record_batch([pa.array(range(rows)), *(pa.array(noise) for _ in range(8))], schema=schema)
    writer = table.factory.create_writer(WriterInitContext(new_attempt_id()))
    writer.write(batch)
    staged = writer.complete()
    assert staged.files[0].bytes > 8 << 20, "so it was a multipart upload"
    TieringRound(table.factory, token=Token("p", "run", 0)).commit([staged])
    s3.served = 0
    assert table.scan(columns=("id",)).column("id").to_pylist() == list(range(rows))
    assert s3.served < 3 << 20, f"{s3.served} bytes for one narrow column of {staged.files[0].bytes}"
    assert table.scan().equals(pa.Table.from_batches([batch]))


def test_requests_do_not_grow_with_the_history(s3: FaultyS3, table: Any) -> None:
    """An epoch of one file: what the page of the plugin says."""
    factory = table.factory
    costs = []
    for epoch in range(14):
        s3.requests.clear()
        work = TieringRound(factory, token=Token("p", "run", epoch))
        work.begin()
        writer = factory.create_writer(WriterInitContext(new_attempt_id()))
        writer.write(pa.RecordBatch.from_pylist(table.ids(epoch), schema=table.schema))
        work.commit([writer.complete()])
        costs.append(Counter(method for method, _ in s3.requests))
    assert costs[2] == costs[13] == {"GET": 14, "HEAD": 2, "PUT": 3, "COPY": 1, "POST": 1}


def test_a_version_is_checked_without_reading(s3: FaultyS3, table: Any) -> None:
    catalog = table.storage.catalog()
    table.round(0)
    version = catalog.table_version(table.path)
    s3.requests.clear()
    assert catalog.table_version(table.path, version) == version
    assert [method for method, _ in s3.requests] == ["HEAD"] * 4
    table.round(1)
    assert catalog.table_version(table.path, version) != version
    catalog.drop_table(table.path)
    assert catalog.table_version(table.path, version) is None


# -- unknown outcomes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.LOST_500, Fault.RESET, Fault.REFUSED, Fault.CONFLICT, Fault.ERROR_500])
def test_a_put_whose_answer_says_nothing(s3: FaultyS3, table: Any, fault: Fault) -> None:
    """Whether it landed is looked up, and it is sent again where it did not."""
    staged = table.stage(table.ids(0))
    work = TieringRound(table.factory, token=Token("p", "run", 0))
    work.begin()
    s3.always_put(fault, MANIFEST, times=1)
    result = work.commit([staged])
    s3.disarm()
    assert s3.injected[fault] >= 1
    assert (result.outcome, result.conflicts, result.snapshot_id) == (RoundOutcome.PUBLISHED, 0, 1)
    assert table.read_ids() == table.plain_ids() == ids(0)


def test_a_rival_is_a_conflict(s3: FaultyS3, table: Any) -> None:
    """Also where the answer to our own put, which was refused, is lost."""
    for epoch, fault in enumerate((None, Fault.ERROR_500, Fault.REFUSED)):
        committer, rival = table.committer(), table.committer()
        stale, state = committer.open(), rival.open()
        staged = table.stage(table.ids(epoch))
        rival.publish(state, [table.stage(table.ids(100 + epoch))], None)
        if fault is not None:
            s3.always_put(fault, MANIFEST, times=1)
        with pytest.raises(Conflict):
            committer.publish(stale, [staged], None)
        s3.disarm()
        committer.discard([staged])
    assert table.read_ids() == table.plain_ids() == ids(100, 101, 102)
    assert not any(key.startswith("__in_progress/") for key in table.all_keys())


def test_the_library_would_refuse_us_because_of_ourselves(s3: FaultyS3, storage: Passthrough) -> None:
    """Why the conditional put is sent by a client that asks once: one that asks again takes its own first put for
    another's. If a later version of the library does not, this tells."""
    clients = client.client_of(BUCKET, storage)
    s3.always_put(Fault.LOST_500, "own", times=1)
    with pytest.raises(client.library().exceptions.AlreadyExistsError):
        client.library().put(clients.store, f"{uuid.uuid4().hex}/own", b"ours", mode="create")
    s3.always_put(Fault.LOST_500, "own", times=1)
    with pytest.raises(client.library().exceptions.GenericError):
        client.library().put(clients.once, f"{uuid.uuid4().hex}/own", b"ours", mode="create")


def test_an_outcome_that_stays_unknown_is_no_conflict(
    s3: FaultyS3, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laketier_localfile.s3.store._WAITS", (0.0,))
    committer = table.committer()
    state = committer.open()
    staged = table.stage(table.ids(0))
    s3.always_put(Fault.ERROR_500, MANIFEST)
    with pytest.raises(StorageError, match="the store failed while publishing a document of the table"):
        committer.publish(state, [staged], None)
    s3.disarm()
    assert table.read_ids() == []
    committer.publish(committer.open(), [staged], None)
    assert table.read_ids() == ids(0)


def test_a_creation_that_is_not_known(s3: FaultyS3, make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the table would need is deleted, as it may still come to be."""
    monkeypatch.setattr("laketier_localfile.s3.store._WAITS", ())
    table = make(create=False)
    s3.always_put(Fault.ERROR_500, "table.json")
    with pytest.raises(StorageError):
        table.create()
    s3.disarm()
    assert len(table.all_keys()) == 1
    table.create()
    assert [orphan.kind for orphan in table.storage.maintenance(table.info).orphans(2**62)] == ["manifest"]


# -- files -------------------------------------------------------------------------------------------------------------


def test_an_attempt_that_is_given_up_leaves_nothing(s3: FaultyS3, table: Any) -> None:
    """Neither objects nor unfinished uploads, which cost money and are seen by nobody."""
    schema = pa.schema([("id", pa.int64()), ("region", pa.string())])
    writer = table.factory.create_writer(WriterInitContext(new_attempt_id()))
    before = table.all_keys()
    text = "".join(uuid.uuid4().hex for _ in range(400))
    for _ in range(3):
        rows = [f"{uuid.uuid4().hex}{text}" for _ in range(1500)]
        writer.write(pa.record_batch([pa.array(range(1500)), pa.array(rows)], schema=schema))
    uploads = _force_uploads(writer)
    assert uploads
    writer.abort()
    assert table.all_keys() == before
    assert s3.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []) == []


def _force_uploads(writer: Any) -> list[Any]:
    rolling = writer._writer
    for key, part in list(rolling._parts.items()):
        rolling._flush(key, part)
    return list(writer._staging._uploads.values())


def test_a_staged_file_that_is_not_there_any_more(s3: FaultyS3, table: Any) -> None:
    staged = table.stage(table.ids(0))
    root = table.info.location.removeprefix(f"s3://{BUCKET}/")
    name = f"{root}/{staged.files[0].path}"
    whole = s3.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
    committer = table.committer()
    s3.client.put_object(Bucket=BUCKET, Key=name, Body=whole[:-1])
    with pytest.raises(StagedFileLost, match=f"has {len(whole) - 1} bytes, and its writer wrote {len(whole)};"):
        committer.publish(committer.open(), [staged], None)
    s3.client.put_object(Bucket=BUCKET, Key=name, Body=b"")
    with pytest.raises(StagedFileLost, match=f"has 0 bytes, and its writer wrote {len(whole)};"):
        committer.publish(committer.open(), [staged], None)
    s3.client.put_object(Bucket=BUCKET, Key=name, Body=whole[:-20] + whole[:20])
    with pytest.raises(StagedFileLost, match="not the one that its writer left"):
        committer.publish(committer.open(), [staged], None)
    s3.client.delete_object(Bucket=BUCKET, Key=name)
    with pytest.raises(StagedFileLost, match="is gone"):
        committer.publish(committer.open(), [staged], None)
    assert table.read_ids() == []


def test_orphans_by_the_dates_of_the_store(s3: FaultyS3, table: Any) -> None:
    table.round(0)
    table.stage(table.ids(1))
    assert list_orphans(table.storage, table.info, grace=timedelta(days=1)).removed == ()
    before = table.all_keys()
    time.sleep(1.1)  # the store dates files by the second
    collect_orphans(table.storage, table.info, grace=timedelta(milliseconds=1))
    gone = before - table.all_keys()
    assert [key.partition("-")[0] for key in gone] == ["__in_progress/part"]
    assert table.read_ids() == ids(0)


def test_a_killed_settlement_is_finished_by_the_next(s3: FaultyS3, table: Any) -> None:
    """Manifest there, files not in place: our readers see them all the same, and the next writer moves them."""
    staged = table.stage(table.ids(0))
    committer = table.committer()
    state = committer.open()
    table.options = replace(table.options)
    s3.always_put(Fault.EXPIRED, ".parquet")
    with pytest.raises(StorageError, match="ExpiredToken"):
        committer.publish(state, [staged], None)
    s3.disarm()
    assert table.read_ids() == ids(0)
    assert table.plain_ids() == []
    assert committer.open().snapshot_id == 1
    assert table.plain_ids() == ids(0)


def test_a_file_that_moves_while_it_is_read(s3: FaultyS3, table: Any) -> None:
    table.round(0)
    info = table.info
    source = table.storage.source(info)
    from laketier.spi import ScanRequest

    plan = source.plan(ScanRequest())
    table.round(1, [], mode=WriteMode.OVERWRITE)
    found = [batch.column("id").to_pylist() for split in plan.splits for batch in source.read(split, plan.schema)]
    assert found == [ids(0)]
    root = info.location.removeprefix(f"s3://{BUCKET}/")
    for key in table.all_keys():
        if key.startswith("__superseded/"):
            s3.client.delete_object(Bucket=BUCKET, Key=f"{root}/{key}")
    with pytest.raises(CorruptTable, match="a data file of the snapshot is missing"):
        list(source.read(plan.splits[0], plan.schema))


# -- drops -------------------------------------------------------------------------------------------------------------


def test_a_writer_of_a_dropped_table(table: Any) -> None:
    """Its commit goes into no table, and least of all into the next one of that name."""
    table.round(0)
    for recreated in (False, True):
        committer = table.committer()
        state = committer.open()
        staged = table.stage(table.ids(1))
        table.storage.catalog().drop_table(table.path)
        if recreated:
            table.create()
        with pytest.raises((Conflict, StagedFileLost)):
            committer.publish(state, [staged], None)
        with pytest.raises(Conflict, match="dropped meanwhile"):
            committer.publish(state, [], None)
        if not recreated:
            table.create()
    assert table.read_ids() == []


def test_a_table_is_not_made_among_files_of_others(s3: FaultyS3, make: Callable[..., Any]) -> None:
    table = make(create=False)
    prefix = table.warehouse.removeprefix(f"s3://{BUCKET}/")
    s3.client.put_object(Bucket=BUCKET, Key=f"{prefix}/db/events/theirs.parquet", Body=b"x")
    with pytest.raises(IncompatibleTable, match=r"theirs\.parquet"):
        table.create()
    s3.client.delete_object(Bucket=BUCKET, Key=f"{prefix}/db/events/theirs.parquet")
    table.create()
    s3.client.put_object(Bucket=BUCKET, Key=f"{prefix}/db/events/in/_laketier_manifests/table.json", Body=b"x")
    with pytest.raises(IncompatibleTable, match="another table is inside"):
        table.storage.catalog().drop_table(table.path)


# -- what users meet ---------------------------------------------------------------------------------------------------


def test_errors_say_what_to_do(s3: FaultyS3, table: Any, storage: Passthrough, monkeypatch: pytest.MonkeyPatch) -> None:
    table.round(0)
    nowhere = replace(table, warehouse="s3://no-such-bucket/x")
    with pytest.raises(StorageError, match="the store refused") as told:
        nowhere.create()
    assert "NoSuchBucket" in str(told.value.why)
    assert "Make the bucket" in str(told.value.fix)
    s3.always_put(Fault.EXPIRED, ".inprogress")
    with pytest.raises(StorageError, match="the store refused while writing a data file") as told:
        table.stage(table.ids(1))
    assert "Set new credentials" in str(told.value.fix)
    s3.always_put(Fault.DENIED, MANIFEST)
    with pytest.raises(StorageError, match="the store refused while publishing") as told:
        replace(table, path=TablePath("db", "denied")).create()
    assert "AccessDenied" in str(told.value.why)
    assert "PutObject" in str(told.value.fix)
    s3.disarm()
    monkeypatch.setattr(client, "RETRIES", 0)
    options = replace(table.options, storage=Passthrough({**storage, "endpoint": "http://127.0.0.1:9"}))
    with pytest.raises(StorageError, match="can't be reached") as told:
        _ = replace(table, options=options).info
    assert "endpoint" in str(told.value.fix)
    for name, value in {"endpoint": "localhost:9", "nonsense": "x", "conditional_put": "disabled"}.items():
        options = replace(table.options, storage=Passthrough({**storage, name: value}))
        with pytest.raises(ConfigError, match="storage"):
            _ = replace(table, options=options).info


@pytest.mark.parametrize("warehouse", ["gs://b/x", "az://b/x", "abfss://c@a/x", "hdfs://h/x", "s3n://b/x"])
def test_other_stores_are_refused_by_name(warehouse: str) -> None:
    with pytest.raises(FeatureNotSupported, match=warehouse.partition(":")[0]):
        LocalFilePlugin().create_storage(LakeStorageConfig(warehouse, LocalFileOptions()))


@pytest.mark.parametrize("warehouse", ["s3://", "s3:///x", "s3://user@bucket/x", "s3://b/a/../c", "s3://b/x?y=1"])
def test_warehouses_that_name_no_place(warehouse: str) -> None:
    with pytest.raises(ConfigError):
        LocalFilePlugin().create_storage(LakeStorageConfig(warehouse, LocalFileOptions()))


def test_files_that_could_not_be_copied_are_refused() -> None:
    with pytest.raises(ConfigError, match="target-file-bytes"):
        LocalFilePlugin().create_storage(LakeStorageConfig("s3://b/x", LocalFileOptions(target_file_bytes=5 << 30)))


def test_files_that_stay_open_are_refused_by_name() -> None:
    with pytest.raises(FeatureNotSupported, match="files that stay open") as told:
        LocalFilePlugin().create_storage(LakeStorageConfig("s3://b/x", LocalFileOptions(open_files=True)))
    assert "lake.localfile.fold-files" in str(told.value)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ConfigError, match="obstore") as told:
        LocalFilePlugin().create_storage(LakeStorageConfig("s3://b/x", LocalFileOptions()))
    assert "obstore>=0.12.1" in str(told.value.fix)


def test_secrets_are_told_to_nobody(
    s3: FaultyS3, table: Any, storage: Passthrough, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    table.round(0)
    state = table.committer().open()
    told = [repr(state), repr(table.info), repr(table.factory), repr(table.storage), str(state.manifests.store)]
    s3.always_put(Fault.EXPIRED, ".inprogress")
    for broken in (table, replace(table, options=replace(table.options, storage=Passthrough({**storage, "x": "y"})))):
        with pytest.raises((StorageError, ConfigError)) as error:
            broken.stage(table.ids(1))
        told.append("".join(traceback.format_exception(error.value)))
    assert SECRET not in "\n".join((*told, caplog.text))
    again = pickle.loads(pickle.dumps(table.factory))  # noqa: S301 - as executors get it
    s3.disarm()
    assert again.create_writer(WriterInitContext(new_attempt_id())).complete().files == ()


def test_plain_readers_are_told_how(s3: FaultyS3, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table.round(0)
    for name, value in {
        "AWS_ENDPOINT_URL": s3.url,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": KEY,
        "AWS_REGION": REGION,
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    lines = LocalFilePlugin().open_with(table.info)
    assert "Polars" in lines
    found = eval(lines["Polars"].removeprefix("import polars; "), {"polars": pl})  # noqa: S307 - our own line
    assert sorted(found["id"].to_list()) == ids(0)
