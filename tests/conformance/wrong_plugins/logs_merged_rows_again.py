"""A table's property has small lists of files merged: what a merged list names counts as appended by the commit that
merged it."""

from __future__ import annotations

from crooked import CrookedPlugin
from propertied import ROWS, PropertiedHarness

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_settings.py::test_rows_are_the_same_under_each_property"
SAYS = "appended under acme.rows-per-file = '1'"


class Harness(PropertiedHarness):
    pass


class MergedChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        is_merged = ROWS in self.source.table.open().metadata.properties
        first = self.versions().earliest if is_merged and start < end else start
        return super().plan(first, end, skip_changes=skip_changes)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("logs-merged-rows-again", changes=MergedChanges)
