"""A build goes on from the parts that an earlier one left, and trains the centres of the others anew."""

from __future__ import annotations

from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_vector_answers.py::test_a_build_of_vectors_that_goes_on"
SAYS = "a ivf-flat index whose build went on from a part of one that died is published: expected no error"


class Indexer(LanceIndexer):
    def resume(self, plan: spi.IndexPlan, max_parts: int) -> spi.IndexPlan:
        return replace(super().resume(plan, max_parts), builder=plan.builder)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("goes-on-with-centres-of-its-own", indexer=Indexer)
