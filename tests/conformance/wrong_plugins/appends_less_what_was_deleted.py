"""What a commit appended is read as the table is, by one reader: without the rows that others deleted since. So a range
that is read later has fewer rows."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from sequenced import CompactingHarness, SequencedSource

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_lives.py::test_deletions_outlive_what_is_cleaned_up"
SAYS = "the rows that versions 1 to 2 appended, where others deleted some of them: expected 10 rows, found 8"


class Harness(CompactingHarness):
    pass


class OneReader(SequencedSource):
    def arrived_split(
        self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema
    ) -> spi.LakeSplit:
        return self.split(index, entry, snapshot, wanted)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("appends-less-what-was-deleted", source=OneReader)
