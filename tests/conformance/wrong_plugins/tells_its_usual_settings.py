"""An index is described by the settings that it has if it is given none. Nobody finds out why a phrase is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_answers_after_a_drop"
SAYS = "what an index of doc tells of its settings"


class Indexer(LanceIndexer):
    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        info = super().publish(plan, built)
        usual = {name: False if value is True else value for name, value in info.options.items()}
        return replace(info, options=usual)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("tells-its-usual-settings", indexer=Indexer)
