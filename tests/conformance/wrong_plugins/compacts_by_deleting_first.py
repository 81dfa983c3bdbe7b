"""A compaction deletes the small files, and then commits the one that takes their place."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable, Writer

from laketier import spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl
from laketier.tiering import TieringRound

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[compact]"
SAYS = "compact, done as a whole or cut off: snapshot 2 is listed, and can't be read"


class Harness:
    def compact(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        source, factory = storage.source(table), storage.tiering_factory(table)
        plan = source.plan(spi.ScanRequest())
        writer = Writer(table, spi.new_attempt_id())
        for split in plan.splits:
            for rows in source.read(split, plan.schema):
                writer.write(rows)
        merged = writer.complete()
        state = FeatherTable(source.table.location).open()  # type: ignore[attr-defined]
        for entry in files_at(state.manifests, state.head.number):
            (source.table.location / entry.path).unlink()  # type: ignore[attr-defined]
        TieringRound(factory, token=None, mode=spi.WriteMode.OVERWRITE).commit([merged])


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("compacts-by-deleting-first")
