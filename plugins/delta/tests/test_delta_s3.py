"""An object store: moto's S3 in this process, behind one lock, as its conditional put is not atomic by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import boto3
import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from laketier.spi import Conflict, Passthrough, WriteMode


class OneAtATime:
    def __init__(self, app):
        self._app = app
        self._lock = threading.Lock()

    def __call__(self, environment, start):
        with self._lock:
            return list(self._app(environment, start))


@pytest.fixture
def s3() -> Iterator[str]:
    server = make_server("127.0.0.1", 0, OneAtATime(DomainDispatcherApplication(create_backend_app)), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_rounds_on_s3(s3, support):
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1", **keys)
    client.create_bucket(Bucket="lake")
    storage = {"AWS_ENDPOINT_URL": s3, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    storage |= {key.upper(): value for key, value in keys.items()}
    lake = support.DeltaLake("s3://lake/warehouse", {"storage": Passthrough(storage), "checkpoint_interval": 2})
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
