"""Splits are counted from 1, as the parts of a file are."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_rows_of_splits_are_right_where_they_are_told"
SAYS = "the indexes of the splits"


class NumberingSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        return replace(plan, splits=tuple(replace(split, index=split.index + 1) for split in plan.splits))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("counts-splits-from-one", source=NumberingSource)
