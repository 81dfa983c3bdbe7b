"""A commit that put the rows of several files into one is told as an append of that file."""

from __future__ import annotations

from crooked import CrookedPlugin, CrookedStorage
from feather_lake.plugin import Writer

from laketier import kit, spi
from laketier.kit.manifests import ManifestSnapshot
from laketier.registry import hookimpl
from laketier.tiering import TieringRound

CAUGHT_BY = "test_foreign_maintenance.py::test_a_compaction_appends_nothing"
SAYS = "the versions of a compaction are read: expected 0 rows, found 40"


class Harness:
    def compact(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        source, factory = storage.source(table), storage.tiering_factory(table)
        plan = source.plan(spi.ScanRequest())
        writer = Writer(table, spi.new_attempt_id())
        for split in plan.splits:
            for rows in source.read(split, plan.schema):
                writer.write(rows)
        TieringRound(factory, token=None, mode=spi.WriteMode.OVERWRITE).commit([writer.complete()])


class CarelessChanges(kit.ManifestChanges):
    """Of each manifest the files that it added."""

    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        plan = super().plan(start, end, skip_changes=True)
        manifests = self.source.table.manifests()
        head, settled = manifests.current()
        snapshot = ManifestSnapshot(manifests, head, head, settled)
        added = [entry for number in range(start, end) for entry in manifests.at(number, head).added]
        splits = [self.source.split(index, entry, snapshot, plan.schema) for index, entry in enumerate(added)]
        return spi.ScanPlan(snapshot_id=end - 1, schema=plan.schema, splits=tuple(splits))


class CarelessStorage(CrookedStorage):
    def changes(self, table: spi.TableInfo) -> kit.ManifestChanges:
        return CarelessChanges(self.source(table))


class CarelessPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return CarelessStorage(**vars(super().create_storage(config)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CarelessPlugin("tells-compacted-rows-again")
