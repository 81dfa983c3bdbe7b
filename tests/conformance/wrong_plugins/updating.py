"""What a foreign tool does to change rows: it replaces their files, in a commit of no pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from laketier import spi


class UpdatingHarness:
    def update_rows(
        self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int], column: str, text: str
    ) -> None:
        source, factory = storage.source(table), storage.tiering_factory(table)
        plan, values = source.plan(spi.ScanRequest()), pa.array(ids, pa.int64())
        replaced: list[str] = []
        writer = factory.create_writer(spi.WriterInitContext(spi.new_attempt_id(), mode=spi.WriteMode.UPSERT))
        at, field = plan.schema.get_field_index(column), plan.schema.field(column)
        for split in plan.splits:
            rows = pa.Table.from_batches(source.read(split, plan.schema), plan.schema)
            told = pc.is_in(rows["id"], values)
            if pc.any(told).as_py():
                replaced += split.files
                for batch in rows.set_column(at, field, pc.if_else(told, text, rows[column])).to_batches():
                    writer.write(batch)
        result = replace(writer.complete(), replaced=tuple(replaced))
        committer = factory.create_committer(spi.CommitterInitContext(spi.new_attempt_id(), mode=spi.WriteMode.UPSERT))
        committer.publish(committer.open(), [result], None)
