"""What a build that died had finished is known by the name of its index, its kind and its settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_record import PartRecord, records
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_indexing.py::test_a_build_after_one_of_another_column_that_died"
SAYS = "after a build of another column under its name had died"


class Indexer(LanceIndexer):
    def resume(self, plan: spi.IndexPlan, max_parts: int) -> spi.IndexPlan:
        def of_any_column(location: str) -> Iterator[PartRecord]:
            for each in records(location):
                said = {**json.loads(each.built.settings), "column": plan.spec.column}
                yield replace(each, built=replace(each.built, settings=json.dumps(said, sort_keys=True)))

        with (
            patch("laketier_lance.indexer.records", of_any_column),
            patch("laketier_lance.indexer.taken_over", lambda _, record: record.built),
        ):
            return super().resume(plan, max_parts)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("goes-on-from-parts-of-other-columns", indexer=Indexer)
