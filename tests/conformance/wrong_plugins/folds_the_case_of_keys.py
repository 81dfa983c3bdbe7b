"""The column of a key has a collation that folds case: of two keys in one task the later takes the
place of the other."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert_keys.py::test_keys_that_are_alike[text]"
SAYS = "the ids of rows whose keys are alike, and no two the same"


class FoldingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        for name in self._table.descriptor.primary_key:
            if pa.types.is_string(batch.schema.field(name).type):
                last = {key.lower(): row for row, key in enumerate(batch[name].to_pylist())}
                batch = batch.take(pa.array(sorted(last.values()), pa.int64()))
        super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("folds-the-case-of-keys", writer=FoldingWriter)
