"""A file is skipped for a filter that is negated where its bounds fulfil the filter itself: of numbers, delta-rs leaves
NaN out of them, which is not less than any."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow.compute as pc

from laketier import spi
from laketier.registry import hookimpl
from laketier_delta import conformance
from laketier_delta.plugin import DeltaPlugin
from laketier_delta.pruning import FilePruner
from laketier_delta.source import DeltaSource

CAUGHT_BY = "test_foreign_tables.py::test_a_foreign_table_is_read_as_its_tool_reads_it"
SAYS = "rows that are read by the filter Not(child=Leaf(column='value', op=<Op.LT"


class Harness(conformance.Harness):
    pass


class Pruner(FilePruner):
    def _may(self, predicate: spi.Predicate) -> Any:
        match predicate:
            case spi.Not(child=spi.Leaf(column=column, op=spi.Op.LT, value=value)):
                _, high = self._low_and_high(column)
                return super()._may(predicate) if high is None else pc.fill_null(pc.greater_equal(high, value), True)
        return super()._may(predicate)


class Source(DeltaSource):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        with patch("laketier_delta.source.FilePruner", Pruner):
            return super().plan(request)


class Plugin(DeltaPlugin):
    def __init__(self) -> None:
        self.identifier = "negates-the-bounds-of-others"  # type: ignore[misc]

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        source = storage.source
        object.__setattr__(storage, "source", lambda table: Source(**vars(source(table))))
        return storage  # type: ignore[no-any-return]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Plugin()
