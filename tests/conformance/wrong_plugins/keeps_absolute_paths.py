"""A table notes where its files lie, as the host that made it called the place. Readers go there, if it is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_places.py::test_a_table_that_was_moved_is_read_where_it_is"
SAYS = "a table was moved, its data files are gone, and a copy is in its old place: it is read: expected Exception, and"


class NotingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        note = self.table.location / "place"
        if not note.exists():
            note.write_text(str(self.table.location), encoding="utf-8")
        return super().publish(state, results, watermark)


class GoingSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        noted = Path((self.table.location / "place").read_text(encoding="utf-8"))
        if (noted / split.payload.path).exists():
            return Source(replace(self.table, place=noted)).read(split, schema)
        return super().read(split, schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-absolute-paths", committer=NotingCommitter, source=GoingSource)
