"""Delta in a store that speaks S3: moto, behind one lock, as its conditional put is not atomic by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from laketier.registry import hookimpl
from laketier_conformance.harness import Warehouse
from laketier_delta.plugin import DeltaPlugin


class OneAtATime:
    def __init__(self) -> None:
        self._served = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()

    def __call__(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with self._lock:
            return list(self._served(environment, start))


class Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *arguments: Any) -> None:
        pass

    def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
        pass


@cache
def store() -> str:
    """Where it is. One for each process of pytest, for as long as that lives."""
    server = make_server("127.0.0.1", 0, OneAtATime(), threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.port}"


class Harness:
    buckets = 0

    def setup(self, _: Path) -> Warehouse:
        self.buckets += 1
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        client = boto3.client("s3", endpoint_url=store(), region_name="us-east-1", **keys)
        client.create_bucket(Bucket=f"lake{self.buckets}")
        options = {"AWS_ENDPOINT_URL": store(), "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
        options |= {key.upper(): value for key, value in keys.items()}
        return Warehouse(f"s3://lake{self.buckets}/warehouse", {f"storage.{k}": v for k, v in options.items()})


class DeltaOnS3(DeltaPlugin):
    identifier: ClassVar[str] = "delta-on-s3"


@hookimpl
def laketier_format() -> DeltaOnS3:
    return DeltaOnS3()
