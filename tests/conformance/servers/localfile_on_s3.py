"""Local files in a store that speaks S3."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

from laketier.registry import hookimpl
from laketier.spi import Feature, Passthrough, Support, unsupported
from laketier_conformance.harness import Warehouse
from laketier_localfile.conformance import Harness as LocalHarness
from laketier_localfile.features import FEATURES
from laketier_localfile.plugin import LocalFilePlugin


class Harness(LocalHarness):
    """``engine_modules``: without them, the plugin's own package would be taken for one. Moto is none: it is the store,
    and has a clock of its own."""

    buckets = 0
    dates_by = timedelta(seconds=1)
    engine_modules = ("obstore", "vortex", "zstandard")

    def setup(self, _: Path) -> Warehouse:
        from one_store import KEY, REGION, make_bucket, store

        self.buckets += 1
        make_bucket(f"plain{self.buckets}")
        options = {"endpoint": store(), "region": REGION, "access_key_id": KEY, "secret_access_key": KEY}
        self.storage = Passthrough(options)
        return Warehouse(f"s3://plain{self.buckets}/warehouse", {f"storage.{k}": v for k, v in options.items()})

    def secret_options(self, _: Path) -> Mapping[str, str]:
        return {"storage.secret_access_key": "{secret}"}


class LocalFileOnS3(LocalFilePlugin):
    identifier: ClassVar[str] = "localfile-on-s3"
    features: ClassVar[Mapping[Feature, Support]] = {
        **FEATURES,
        Feature.PLAIN_PARQUET: unsupported("Spark would ask the store with settings of its own"),
    }


@hookimpl
def laketier_format() -> LocalFileOnS3:
    return LocalFileOnS3()
