"""A split tells its day as C spells one, whose years have no zeros in front: an upsert takes day 1-01-01 for another
partition than 0001-01-01, skips it, and a key is there twice."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from local import reading

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_partition_values.py::test_filters_on_partitions[date]"
SAYS = "the partition that a split tells, whose rows have [datetime.date(1, 1, 1), datetime.date(1, 1, 1)]"


class ShorterSource(LocalFileSource):
    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        split = super().split(index, entry, snapshot, wanted)
        days = {field.name for field in snapshot.schema if pa.types.is_date(field.type)}
        told = [(name, text and text.lstrip("0") if name in days else text) for name, text in split.partition]
        return replace(split, partition=tuple(told))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("tells-years-without-zeros", ShorterSource)
