"""A data file is plain Parquet, so each split names its own: also one from before a column was added."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from local import reading

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_source.py::test_plain_parquet_of_before_a_change[added]"
SAYS = "columns of the plain Parquet file of a split, after a column was added: expected"


class NamingSource(LocalFileSource):
    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        made = super().split(index, entry, snapshot, wanted)
        return replace(made, plain_parquet=str(self.table.location / entry.path))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("names-plain-files-of-before", NamingSource)
