"""What a task built is published as the part that its result names, whatever it was built of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import unpacked
from laketier_lance.index_results import BuiltSegment
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_changes.py::test_a_result_that_somebody_changed"
SAYS = "a result that was built of another part is published"


def _of_any(built: spi.BuiltIndexPart, name: str, location: str, fragments: set[int]) -> Any:
    told = replace(BuiltSegment.read(built.payload), fragments=tuple(fragments))
    return unpacked(replace(built, payload=told.text()), name, location, fragments)


class Indexer(LanceIndexer):
    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        with patch("laketier_lance.indexer.unpacked", _of_any):
            return super().publish(plan, built)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("takes-one-part-for-another", indexer=Indexer)
