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

from laketier.spi import Feature
from laketier_conformance.expect import NotShown
from laketier_conformance.stores.proxy import Proxy
from laketier_conformance.stores.store import ObjectStore

_SECRET = "cAnArY-0f-th3-st0re"
_REGION = "us-east-1"
_NEEDED = ("boto3", "flask", "flask_cors", "moto", "werkzeug")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_HERE = "127.0.0.1"


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
        # A store refuses its usual region by name, and any other one without it.
        more = {} if self.region == _REGION else {"CreateBucketConfiguration": {"LocationConstraint": self.region}}
        self.client.create_bucket(Bucket=name, **more)
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


def past_proxies() -> dict[str, str]:
    """Variables by which libraries reach a store on this machine without a proxy that the environment names, as no
    proxy elsewhere reaches it. None where it names none."""
    if not any(os.environ.get(each) for name in _PROXIES for each in (name, name.upper())):
        return {}
    names = ("no_proxy", "NO_PROXY")
    known = next((os.environ[name] for name in names if os.environ.get(name)), "")
    return dict.fromkeys(names, known if known.strip() == "*" else f"{known},{_HERE}".lstrip(","))


@contextmanager
def running(endpoint: str | None) -> Iterator[Store]:
    """The store that the user runs at ``endpoint``, with keys from the environment; or moto's, for as long as the
    block."""
    if endpoint is not None:
        key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or _REGION
        with _before(endpoint, key, secret, region, False) as store:
            yield store
        return
    command = [sys.executable, "-m", "laketier_conformance.stores.atomic"]
    # moto asks boto3 itself, which would look for the user's profile.
    alone = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    alone |= {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=alone) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        if not port:
            raise NotShown(Feature.OBJECT_STORES, f"moto's server ended at once: `{' '.join(command)}` tells why")
        try:
            with _before(f"http://{_HERE}:{port}", "laketier-conformance", _SECRET, _REGION, True) as store:
                yield store
        finally:
            # A process that was forked meanwhile may hold its standard input open. It has nothing to keep.
            server.terminate()


@contextmanager
def _before(endpoint: str, key: str, secret: str, region: str, is_ours: bool) -> Iterator[Store]:
    import boto3
    from botocore.config import Config
    from botocore.session import Session

    # All of it is told, so the user's profiles and proxies are not asked: one that is not there is an error.
    nowhere = {
        "profile": (None, None, None, None),
        "config_file": (None, None, os.devnull, None),
        "credentials_file": (None, None, os.devnull, None),
    }
    client = boto3.Session(botocore_session=Session(session_vars=nowhere)).client(
        "s3",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(s3={"addressing_style": "path"}, proxies={}),
    )
    with Proxy(endpoint, keeps=is_ours) as proxy, closing(client):
        yield Store(proxy, client, key, secret, region, is_ours)
