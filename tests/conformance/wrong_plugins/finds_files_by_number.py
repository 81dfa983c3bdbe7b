"""A split holds the number of its file, which is short. Who reads it looks up the file in the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_isolation.py::test_a_plan_outlives_an_overwrite"
SAYS = "rows of a plan that was made before an overwrite: expected [0, 1, 2, 3, 4], found [10000"


class NumberSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        manifests = self.table.manifests()
        files = files_at(manifests, manifests.current()[0].number)
        entry = files[min(split.index, len(files) - 1)] if files else None
        payload = split.payload if entry is None else replace(split.payload, path=entry.path)
        yield from super().read(replace(split, payload=payload), schema)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("finds-files-by-number", source=NumberSource)
