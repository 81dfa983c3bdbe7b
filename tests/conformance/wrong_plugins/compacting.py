"""What compactions of the small format begin with: one file of all rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from feather_lake.plugin import Writer

from laketier import spi


def merged(storage: spi.LakeStorage, table: spi.TableInfo, without: Sequence[int] = ()) -> spi.WriteResult:
    """All rows of the table but those with the ids ``without``, staged."""
    source = storage.source(table)
    plan = source.plan(spi.ScanRequest())
    writer = Writer(table, spi.new_attempt_id())
    for split in plan.splits:
        for rows in source.read(split, plan.schema):
            gone = pc.is_in(rows["id"], pa.array(without, pa.int64()))
            writer.write(rows.filter(pc.invert(gone)) if without else rows)
    return writer.complete()
