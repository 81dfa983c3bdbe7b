"""What compactions of the small format begin with: one file of all rows."""

from __future__ import annotations

from feather_lake.plugin import Writer

from laketier import spi


def merged(storage: spi.LakeStorage, table: spi.TableInfo) -> spi.WriteResult:
    """All rows of the table, staged."""
    source = storage.source(table)
    plan = source.plan(spi.ScanRequest())
    writer = Writer(table, spi.new_attempt_id())
    for split in plan.splits:
        for rows in source.read(split, plan.schema):
            writer.write(rows)
    return writer.complete()
