"""An index that can not be read is told as if others had come first."""

from __future__ import annotations

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_builds.py::test_an_append_to_damaged_vectors"
SAYS = "expected an error that tells of damage, found Conflict"


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        try:
            return super().plan(spec, max_parts, mode)
        except spi.CorruptTable as error:
            raise spi.Conflict(str(error)) from error


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("takes-damage-for-a-race", indexer=Indexer)
