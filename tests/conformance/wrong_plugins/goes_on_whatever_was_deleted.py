"""A part of a build that died is used, though it lacks rows that are there again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_record import PartRecord, records
from laketier_lance.index_results import BuiltSegment
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_builds.py::test_a_build_goes_on_after_a_change[brought-back]"
SAYS = "went on, brought back meanwhile"


class Indexer(LanceIndexer):
    def resume(self, plan: spi.IndexPlan, max_parts: int) -> spi.IndexPlan:
        def as_they_are(location: str) -> Iterator[PartRecord]:
            for each in records(location):
                none = replace(BuiltSegment.read(each.built.payload), deleted=()).text()
                yield replace(each, built=replace(each.built, payload=none))

        with patch("laketier_lance.indexer.records", as_they_are):
            return super().resume(plan, max_parts)

    def _brought_back(self, *_: Any) -> set[int]:
        return set()


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("goes-on-whatever-was-deleted", indexer=Indexer)
