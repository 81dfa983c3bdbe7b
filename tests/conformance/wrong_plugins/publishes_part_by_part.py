"""Each part is published in a commit of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_no_snapshot_has_half_an_index"
SAYS = "the rows that are in no index"


class Indexer(LanceIndexer):
    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        spi.check_built(plan, built, where=self._location)
        for each in built:
            info = super().publish(replace(plan, parts=(each.part,)), [each])
        return info

    def _obstacle(self, *_: Any) -> str:
        return ""


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("publishes-part-by-part", indexer=Indexer)
