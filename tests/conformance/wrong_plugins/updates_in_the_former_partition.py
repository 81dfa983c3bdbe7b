"""Who changes rows writes a file anew in the partition that it had, also where a row has become one of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from lasting import lasting

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_partitions.py::test_rows_that_others_put_into_another_partition[name]"
SAYS = "the rows where name = 'changed by others', of a table by name, after the update: expected [0, 1, 1001], found"


class Harness:
    def update_rows(
        self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int], column: str, text: str
    ) -> None:
        source, factory = storage.source(table), storage.tiering_factory(table)
        plan, values = source.plan(spi.ScanRequest()), pa.array(ids, pa.int64())
        at, field = plan.schema.get_field_index(column), plan.schema.field(column)
        results = []
        for split in plan.splits:
            rows = pa.Table.from_batches(source.read(split, plan.schema), plan.schema)
            told = pc.is_in(rows["id"], values)
            if pc.any(told).as_py():
                context = spi.WriterInitContext(spi.new_attempt_id(), mode=spi.WriteMode.UPSERT)
                writer = factory.create_writer(context)
                for batch in rows.set_column(at, field, pc.if_else(told, text, rows[column])).to_batches():
                    writer.write(batch)
                made = writer.complete()
                files = tuple(replace(file, partition=split.partition) for file in made.files)
                results.append(replace(made, files=files, replaced=split.files))
        committer = factory.create_committer(spi.CommitterInitContext(spi.new_attempt_id(), mode=spi.WriteMode.UPSERT))
        committer.publish(committer.open(), results, None)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return lasting("updates-in-the-former-partition")
