"""The bucket of a file is read from its name, and has one digit there: bucket 12 is told as 2."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from local import reading

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_partition_values.py::test_filters_on_keys_of_buckets[int]"
SAYS = "the bucket that a split tells, of 16"


class DigitSource(LocalFileSource):
    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        split = super().split(index, entry, snapshot, wanted)
        return replace(split, bucket=split.bucket if split.bucket < 0 else split.bucket % 10)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("takes-the-last-digit-for-the-bucket", DigitSource)
