"""Deleted rows are listed by their ids. A file whose ids are of a narrower type than the table's has none of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin
from sequenced import CompactingHarness, Part, SequencedSource

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_updates.py::test_rows_that_others_deleted_before_their_column_changed"
SAYS = "rows of a table in which others deleted rows, and column id was widened"


class Harness(CompactingHarness):
    pass


class TypedSource(SequencedSource):
    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        narrower = snapshot.written_with(entry).field("id").type != snapshot.schema.field("id").type
        return replace(super().split(index, entry, snapshot, wanted), payload=Part(entry.path, whole=narrower))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("matches-keys-of-one-type", source=TypedSource)
