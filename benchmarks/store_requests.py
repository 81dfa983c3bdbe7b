"""What requests an epoch costs in an object store, as the table's history grows.

``python -m benchmarks.store_requests [--epochs 25] [--formats …] [--keys EPOCH]``. The store is moto, in this process,
so only the numbers of requests mean something. Each epoch is one file of ten rows, written by `laketier.open_writer`.
``--keys`` prints each request of one epoch.
"""

from __future__ import annotations

import argparse
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs

import boto3
import pyarrow as pa
from rich.console import Console

import laketier
from benchmarks import lakes
from benchmarks.report import Row, Section, show
from laketier_conformance.stores.atomic import OneAtATime, server

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
ROWS = 10
SHOWN = ("GET", "HEAD", "LIST", "PUT", "COPY", "POST", "DELETE")
_KEY = "testing"


class Counting:
    """moto, and the requests that it was sent: what, and of which key."""

    def __init__(self) -> None:
        self._store = OneAtATime()
        self.sent: list[tuple[str, str]] = []

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        what, key = environ["REQUEST_METHOD"], environ["PATH_INFO"].lstrip("/").partition("/")[2]
        if what == "PUT" and "HTTP_X_AMZ_COPY_SOURCE" in environ:
            what = "COPY"
        if what == "GET" and {"list-type", "prefix", "delimiter"} & query.keys():
            what, key = "LIST", query.get("prefix", [""])[0]
        with self._store.lock:
            self.sent.append((what, key))
        return self._store(environ, start)


def main() -> None:
    """Write the epochs into a table of each format."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store_requests", description=__doc__)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--formats", nargs="+", help="only these formats")
    parser.add_argument("--keys", type=int, default=-1, metavar="EPOCH", help="print each request of this epoch")
    arguments = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 170)
    application = Counting()
    store = server(application)
    threading.Thread(target=store.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{store.port}"
    keys = {"aws_access_key_id": _KEY, "aws_secret_access_key": _KEY}
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["LAKETIER_CACHE_DIR"] = str(Path(folder) / "cache")
        for name in lakes.installed(arguments.formats):
            client.create_bucket(Bucket=name)
            values = {
                "lake.format": name,
                "lake.warehouse": f"s3://{name}/warehouse",
                "lake.table": lakes.TABLE,
                "lake.pipeline": "bench",
                **{f"lake.{name}.{key}": value for key, value in _store_options(name, endpoint, Path(folder)).items()},
            }
            show(_counted(name, values, application, arguments.epochs, arguments.keys, console), console)
    store.shutdown()


def _counted(name: str, values: dict[str, str], store: Counting, epochs: int, shown: int, console: Console) -> Section:
    section = Section(f"{name}: requests of an epoch, by how many were before it")
    with laketier.open_writer(values, SCHEMA) as writer:
        for epoch in range(epochs):
            store.sent.clear()
            first = epoch * ROWS
            names = [f"n{number}" for number in range(ROWS)]
            writer.write(epoch, [pa.record_batch([range(first, first + ROWS), names], schema=SCHEMA)])
            sent = [*store.sent]
            counts = Counter(what for what, _ in sent)
            row: Row = {"before it": epoch, "all": len(sent)}
            section.rows.append(row | {what: counts.pop(what, 0) for what in SHOWN} | dict(counts))
            if epoch == shown:
                for what, key in sent:
                    console.print(f"  {what:6} {key}", highlight=False)
    return section


def _store_options(name: str, endpoint: str, folder: Path) -> dict[str, str]:
    """The options below ``lake.<format>.`` by which the store is reached. Iceberg's catalog is on the local disk."""
    if name == "iceberg":
        return {
            "catalog.type": "sql",
            "catalog.uri": f"sqlite:///{folder}/catalog.sqlite",
            "catalog.s3.endpoint": endpoint,
            "catalog.s3.access-key-id": _KEY,
            "catalog.s3.secret-access-key": _KEY,
            "catalog.s3.region": "us-east-1",
            "catalog.s3.force-virtual-addressing": "false",
        }
    return {
        "storage.AWS_ENDPOINT_URL": endpoint,
        "storage.AWS_ALLOW_HTTP": "true",
        "storage.AWS_REGION": "us-east-1",
        "storage.AWS_ACCESS_KEY_ID": _KEY,
        "storage.AWS_SECRET_ACCESS_KEY": _KEY,
    }


if __name__ == "__main__":
    main()
