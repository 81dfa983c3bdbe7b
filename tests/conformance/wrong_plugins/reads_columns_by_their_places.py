"""Its own writer puts the columns of a file in the table's order, so it reads them by their places."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from marked_by_others import ForeignHarness, MarkedSource, marked_by_others

from laketier import kit, spi
from laketier.kit.manifests import ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_tables.py::test_a_foreign_table_is_read_as_its_tool_reads_it"
SAYS = "(whose columns lie in another order): rows that are read for the first time"


class Harness(ForeignHarness):
    pass


class PlacedSource(MarkedSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        whole = self.table.manifests().current()[0]
        names = ManifestSnapshot(self.table.manifests(), whole, whole, settled=True).schema.names
        path = self.table.location / split.payload.path
        with pa.ipc.open_file(str(path)) as file:
            for batch in map(file.get_batch, range(file.num_record_batches)):
                known = names[: batch.num_columns]
                columns = dict(zip(known, batch.columns, strict=True))
                same = [n for n in schema.names if n in known and columns[n].type == schema.field(n).type]
                rows = pa.record_batch([columns[n] for n in same], names=same) if same else batch.select([])
                rows = rows.take([i for i in range(len(batch)) if i not in split.payload.deleted]) if same else rows
                yield kit.conform(rows, schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return marked_by_others("reads-columns-by-their-places", source=PlacedSource)
