"""Who updates rows lists their ids as deleted, and appends them. What is put together counts as the oldest of it, so
the rows are gone. Who deletes rows writes files anew, which shows none of this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from lasting import LastingHarness
from leaving import KeepingHarness
from sequenced import CompactingHarness, SequencedSource

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_updates.py::test_rows_that_others_updated_stay_so"
SAYS = "a table of which others updated rows, after a compaction: expected 15 entries, found 12"


class Harness(CompactingHarness):
    oldest = True
    _rewrite = LastingHarness._rewrite

    def delete_rows(self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int]) -> None:
        gone = pa.array(ids, pa.int64())
        self._rewrite(storage, table, lambda rows: rows.filter(pc.invert(pc.is_in(rows["id"], gone))))

    def update_rows(
        self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int], column: str, text: str
    ) -> None:
        source, factory = storage.source(table), storage.tiering_factory(table)
        plan = source.plan(spi.ScanRequest())
        batches = [rows for split in plan.splits for rows in source.read(split, plan.schema)]
        rows = pa.Table.from_batches(batches, plan.schema)
        rows = rows.filter(pc.is_in(rows["id"], pa.array(ids, pa.int64())))
        at, field = plan.schema.get_field_index(column), plan.schema.field(column)
        KeepingHarness.delete_rows(self, storage, table, ids)
        writer = factory.create_writer(spi.WriterInitContext(spi.new_attempt_id()))
        for batch in rows.set_column(at, field, pa.array([text] * len(rows), field.type)).to_batches():
            writer.write(batch)
        committer = factory.create_committer(spi.CommitterInitContext(spi.new_attempt_id()))
        committer.publish(committer.open(), [replace(writer.complete(), after=None)], None)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("compacts-updates-as-the-oldest", source=SequencedSource)
