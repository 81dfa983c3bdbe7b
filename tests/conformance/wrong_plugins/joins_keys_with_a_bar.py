"""The key of a row is one text, with a bar between its parts: "a|b" and "c" are one key with "a" and "b|c"."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert_keys.py::test_keys_of_two_columns_that_are_alike_when_joined"
SAYS = "the ids of rows whose keys of two columns no two share"


class JoiningWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        if key := self._table.descriptor.primary_key:
            parts = zip(*(batch[name].to_pylist() for name in key), strict=True)
            last = {"|".join(map(str, part)): row for row, part in enumerate(parts)}
            batch = batch.take(pa.array(sorted(last.values()), pa.int64()))
        super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("joins-keys-with-a-bar", writer=JoiningWriter)
