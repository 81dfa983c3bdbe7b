"""Where the suite's store is: moto in a process of its own, or one that the user runs."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from laketier_conformance.stores.proxy import Proxy
from laketier_conformance.stores.store import ObjectStore

OPTION = "--lake-s3-endpoint"
_SECRET = "cAnArY-0f-th3-st0re"
_REGION = "us-east-1"
_NEEDED = ("boto3", "flask", "moto")


@dataclass(frozen=True)
class Store:
    """A store, its keys, and the proxy before it. ``client`` is boto3's, which goes past the proxy."""

    proxy: Proxy
    client: Any
    access_key_id: str
    secret_access_key: str = field(repr=False)
    region: str
    is_ours: bool
    """It ends with the run."""

    def bucket(self, folder: Path) -> ObjectStore:
        """A new one, reached through the proxy."""
        name = f"laketier-{uuid.uuid4().hex[:12]}"
        self.client.create_bucket(Bucket=name)
        folder.mkdir(parents=True, exist_ok=True)
        return ObjectStore(self.proxy.url, name, self.access_key_id, self.secret_access_key, self.region, folder)

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """All keys of a bucket, sorted."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return sorted(found["Key"] for page in pages for found in page.get("Contents", ()))

    def uploads(self, bucket: str) -> list[str]:
        """The keys of uploads in parts that were neither completed nor aborted."""
        found = self.client.list_multipart_uploads(Bucket=bucket)
        return sorted(each["Key"] for each in found.get("Uploads", ()))

    def clear(self, bucket: str) -> None:
        """Delete a bucket and all that is in it, where it would outlive the run."""
        if self.is_ours:
            return
        for key in self.keys(bucket):
            self.client.delete_object(Bucket=bucket, Key=key)
        self.client.delete_bucket(Bucket=bucket)


def why_none(endpoint: str | None) -> str | None:
    """What keeps the suite from having a store."""
    needed = _NEEDED if endpoint is None else _NEEDED[:1]
    missing = [name for name in needed if find_spec(name) is None]
    if not missing:
        return None
    return (
        f"the suite has no object store, as {', '.join(missing)} can't be imported: run "
        "`pip install 'moto[server]>=5.2.5,<6'`, laketier's extra `conformance-s3`"
    )


@contextmanager
def running(endpoint: str | None) -> Iterator[Store]:
    """The store that the user runs at ``endpoint``, with keys from the environment; or moto's, for as long as the
    block."""
    if endpoint is not None:
        key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        with _before(endpoint, key, secret, os.environ.get("AWS_REGION", _REGION), False) as store:
            yield store
        return
    command = [sys.executable, "-m", "laketier_conformance.stores.atomic"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        assert port, f"moto's server ended at once: `{' '.join(command)}` tells why"
        try:
            with _before(f"http://127.0.0.1:{port}", "laketier-conformance", _SECRET, _REGION, True) as store:
                yield store
        finally:
            server.stdin.close()


@contextmanager
def _before(endpoint: str, key: str, secret: str, region: str, is_ours: bool) -> Iterator[Store]:
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(s3={"addressing_style": "path"}),
    )
    with Proxy(endpoint) as proxy, closing(client):
        yield Store(proxy, client, key, secret, region, is_ours)
