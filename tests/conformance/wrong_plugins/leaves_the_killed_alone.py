"""A commit whose answer is lost counts as one that never was: the plan is refused."""

from __future__ import annotations

from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_a_publish_that_is_killed"
SAYS = "whoever asks again finds it, or publishes it: expected no error, found TableChanged"


class Indexer(LanceIndexer):
    def _is_landed(self, dataset: Any, found: Any, plan: spi.IndexPlan, *_: Any) -> bool:
        if int(dataset.version) != plan.snapshot_id:
            raise spi.TableChanged("the table is not that of the plan", where=self._location)
        return False


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("leaves-the-killed-alone", indexer=Indexer)
