"""What a task says of its part is read as if it could be nothing else."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_changes.py::test_a_result_that_somebody_changed"
SAYS = "an error of laketier's, found KeyError"


log = logging.getLogger(__name__)


class Indexer(LanceIndexer):
    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        said = [json.loads(each.payload or "{}") for each in built]
        log.debug("%d files", sum(len(each["files"]) for each in said))
        return super().publish(plan, built)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("trusts-results-of-tasks", indexer=Indexer)
