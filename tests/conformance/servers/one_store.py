"""The suite's store that speaks S3, in the process of pytest."""

from __future__ import annotations

import threading
from functools import cache

import boto3

from laketier_conformance.stores.atomic import server

KEY, REGION = "test", "us-east-1"


@cache
def store() -> str:
    """Where it is. One for each process of pytest, for as long as that lives."""
    served = server()
    threading.Thread(target=served.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{served.port}"


def make_bucket(name: str) -> None:
    """Make an empty bucket."""
    client = boto3.client(
        "s3", endpoint_url=store(), region_name=REGION, aws_access_key_id=KEY, aws_secret_access_key=KEY
    )
    client.create_bucket(Bucket=name)
