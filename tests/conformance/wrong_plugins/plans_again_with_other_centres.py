"""A plan that is made again keeps the parts whose rows are unchanged, and has the others built with centres of their
own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_vector_answers.py::test_a_build_of_vectors_that_goes_on"
SAYS = "a ivf-flat index of files of which one went with its rows meanwhile, and is planned again: expected no error"


class Indexer(LanceIndexer):
    def replan(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart], max_parts: int) -> spi.IndexPlan:
        anew = super().replan(plan, built, max_parts)
        builder: Any = anew.builder
        if plan.mode is not spi.IndexMode.REPLACE or not hasattr(builder, "model"):
            return anew
        return replace(anew, builder=replace(builder, model=None))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("plans-again-with-other-centres", indexer=Indexer)
