"""A split tells the values of its partition as Python writes them. Null is written as None, a text like any other."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_partitions[string]"
SAYS = "the partition that a split tells is that of its rows: expected {None}, found 'None'"


class TellingSource(RicherSource):
    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        split = super().split(index, entry, snapshot, wanted)
        return replace(split, partition=tuple((name, f"{value}") for name, value in split.partition))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("tells-null-partitions-as-text", source=TellingSource)
