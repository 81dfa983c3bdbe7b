"""Who puts files together says of each file that it makes that it is of the partition of the first."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from lasting import LastingHarness, lasting

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_partitions.py::test_partitions_that_others_put_together"
SAYS = "the partitions that splits of rows with the name"


class Harness(LastingHarness):
    def compact(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        source, factory = storage.source(table), storage.tiering_factory(table)
        plan = source.plan(spi.ScanRequest())
        writer = factory.create_writer(spi.WriterInitContext(spi.new_attempt_id(), mode=spi.WriteMode.UPSERT))
        for split in plan.splits:
            for rows in source.read(split, plan.schema):
                writer.write(rows)
        made = writer.complete()
        files = tuple(replace(file, partition=made.files[0].partition) for file in made.files)
        replaced = tuple(path for split in plan.splits for path in split.files)
        committer = factory.create_committer(spi.CommitterInitContext(spi.new_attempt_id(), mode=spi.WriteMode.UPSERT))
        committer.publish(committer.open(), [replace(made, files=files, replaced=replaced)], None)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return lasting("compacts-into-the-first-partition")
