"""Null is taken out of the list of a filter, as it equals nothing. What is in none of the other values is then told,
and with null nobody knows."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_rows_of_several_batches"
SAYS = (
    "rows were read by the filter Not(child=Leaf(column='n', op=<Op.IN: 'in'>, value=(5, None))): expected the ids []"
)


class TidyingSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        return super().plan(replace(request, filters=tuple(map(_tidied, request.filters))))


def _tidied(predicate: spi.Predicate) -> spi.Predicate:
    match predicate:
        case spi.Not(child):
            return spi.Not(_tidied(child))
        case spi.Leaf(column, spi.Op.IN, values) if any(type(value) is int for value in values):
            return spi.Leaf(column, spi.Op.IN, tuple(value for value in values if value is not None))
    return predicate


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("leaves-null-out-of-lists", source=TidyingSource)
