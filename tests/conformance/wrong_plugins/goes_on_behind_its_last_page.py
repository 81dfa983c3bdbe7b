"""Rows are read page by page, each behind the last one before it. Whether the table is as it was planned is looked at
before the first page alone, so the last pages have what came meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier.kit.manifests import ManifestFile
from laketier.kit.manifests.rollup import files_at
from laketier.registry import hookimpl
from laketier.spi import LakeSplit

CAUGHT_BY = "test_values.py::test_a_batch_of_many_different_texts"
SAYS = "a plan of 65538 rows is read, and a row comes after its first batch: found 65539 rows, of which the last one is"


class PagingSource(Source):
    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        before = self._paths()
        yield from super().read(split, schema)
        for path in self._paths():
            if path not in before:
                yield from super().read(LakeSplit(index=0, payload=ManifestFile(path)), schema)

    def _paths(self) -> list[str]:
        manifests = self.table.manifests()
        head, _ = manifests.head()
        return [entry.path for entry in files_at(manifests, head.number, head)]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("goes-on-behind-its-last-page", source=PagingSource)
