"""Delta in a store that speaks S3."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from one_store import KEY, REGION, make_bucket, store

from laketier.registry import hookimpl
from laketier_conformance.harness import Warehouse
from laketier_delta.plugin import DeltaPlugin


class Harness:
    buckets = 0

    def setup(self, _: Path) -> Warehouse:
        self.buckets += 1
        make_bucket(f"lake{self.buckets}")
        options = {"AWS_ENDPOINT_URL": store(), "AWS_ALLOW_HTTP": "true", "AWS_REGION": REGION}
        options |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": KEY}
        return Warehouse(f"s3://lake{self.buckets}/warehouse", {f"storage.{k}": v for k, v in options.items()})


class DeltaOnS3(DeltaPlugin):
    identifier: ClassVar[str] = "delta-on-s3"


@hookimpl
def laketier_format() -> DeltaOnS3:
    return DeltaOnS3()
