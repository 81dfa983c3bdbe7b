"""A split is a version and the number of a file in it. A table that is made again has both, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.kit.manifests.chain import manifest_at
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.snapshot import ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_plan_of_a_table_that_was_made_anew_alike"
SAYS = "a table was made anew alike, and a plan of before is refused, or reads the rows of before"


class NumberedSource(Source):
    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        found = super().split(index, entry, snapshot, wanted)
        number = sorted(each.path for each in snapshot.files()).index(entry.path)
        return replace(found, payload=(snapshot.manifest.number, number))

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        version, number = split.payload
        manifests = self.table.manifests()
        head, settled = manifests.current()
        snapshot = ManifestSnapshot(manifests, head, manifest_at(manifests, version, head), settled)
        path = sorted(each.path for each in snapshot.files())[number]
        yield from super().read(replace(split, payload=kit.ManifestFile(path)), schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("splits-by-version-and-number", source=NumberedSource)
