"""A table in S3, for tests that drive tables, and what others see of it."""

from __future__ import annotations

import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from conftest import Table, read_as_told
from localfile_child import Child

from faulty_s3 import BUCKET, KEY, REGION, FaultyS3
from laketier.kit.manifests import ManifestLog
from laketier.spi import Passthrough
from laketier_localfile.file_formats.known import of_table
from laketier_localfile.names import PARQUET
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.place import place_of
from laketier_localfile.table import LocalFileTable


@dataclass
class S3Table(Table):
    """It lies in ``s3``."""

    s3: FaultyS3 = None  # type: ignore[assignment]

    @classmethod
    def of(cls, s3: FaultyS3, storage: Passthrough, *, create: bool = True, **options: Any) -> S3Table:
        """A table in a warehouse of its own."""
        told = {name: options.pop(name) for name in ("schema", "partition_by", "primary_key") if name in options}
        warehouse = f"s3://{BUCKET}/{uuid.uuid4().hex}"
        table = cls(warehouse, options=LocalFileOptions(storage=storage, **options), s3=s3, **told)
        if create:
            table.create()
        return table

    @property
    def location(self) -> Any:
        """Of its keys."""
        return PurePosixPath(self.warehouse.removeprefix(f"s3://{BUCKET}/"), self.path.database, self.path.table)

    @property
    def log(self) -> ManifestLog:
        place = place_of(f"s3://{BUCKET}/{self.location}", self.options.storage)
        return LocalFileTable(place).manifests()

    def all_keys(self) -> set[str]:
        """Of the table, relative to it."""
        prefix = f"{self.location}/"
        return {key.removeprefix(prefix) for key in self.s3.keys(prefix)}

    def plain_files(self) -> list[Any]:
        return sorted(self.location / key for key in self.all_keys() if not any(p[0] in "_." for p in key.split("/")))

    def staged_files(self) -> list[Any]:
        return sorted(self.location / key for key in self.all_keys() if key.startswith("__in_progress/"))

    def plain_ids(self) -> list[int]:
        """What pyarrow finds by the names of the files alone."""
        files = pafs.S3FileSystem(
            endpoint_override=self.s3.url.removeprefix("http://"),
            scheme="http",
            access_key=KEY,
            secret_key=KEY,
            region=REGION,
            connect_timeout=60,
            request_timeout=60,
        )
        found = files.get_file_info(pafs.FileSelector(f"{BUCKET}/{self.location}", recursive=True))
        paths = [info.path for info in found if info.path.endswith(".parquet")]
        return sorted(i for path in paths for i in pq.read_table(path, filesystem=files).column("id").to_pylist())

    def read_by_others(self) -> dict[str, list[int]]:
        """Over HTTP where a reader takes the file format from a store; and of a copy of the table, which boto3 fetched,
        by the lines that people are told to read a folder with."""
        chosen = of_table(self.info.descriptor.properties)
        found = {}
        if chosen.name == PARQUET:
            options = {"aws_endpoint_url": self.s3.url, "aws_region": REGION, "aws_allow_http": "true"}
            options |= {"aws_access_key_id": KEY, "aws_secret_access_key": KEY}
            rows = pl.scan_parquet(f"s3://{BUCKET}/{self.location}/**/*.parquet", storage_options=options).collect()
            found = {"Polars in the bucket": sorted(rows["id"].to_list()), "pyarrow in the bucket": self.plain_ids()}
        with tempfile.TemporaryDirectory() as folder:
            for key in self.plain_files():
                copy = Path(folder, key.relative_to(self.location))
                copy.parent.mkdir(parents=True, exist_ok=True)
                self.s3.client.download_file(BUCKET, str(key), str(copy))
            found.update(read_as_told(chosen.open_with(folder, self.schema)))
        return found

    def child(self, failpoints: str, *epochs: int, mode: str = "append", pipeline: str = "p", **options: Any) -> Child:
        told = {"storage": self.options.storage, **options}
        return super().child(failpoints, *epochs, mode=mode, pipeline=pipeline, **told)
