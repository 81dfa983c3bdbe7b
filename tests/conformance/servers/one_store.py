"""A store that speaks S3: moto, behind one lock, as its conditional put is not atomic by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import boto3
from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

KEY, REGION = "test", "us-east-1"


class OneAtATime:
    def __init__(self) -> None:
        # By itself moto looks through all of its services at each request, which takes half of the time.
        self._served = create_backend_app("s3")
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


def make_bucket(name: str) -> None:
    """Make an empty bucket."""
    client = boto3.client(
        "s3", endpoint_url=store(), region_name=REGION, aws_access_key_id=KEY, aws_secret_access_key=KEY
    )
    client.create_bucket(Bucket=name)
