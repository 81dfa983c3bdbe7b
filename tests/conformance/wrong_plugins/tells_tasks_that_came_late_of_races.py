"""A task of a plan whose table was made again is told to come again."""

from __future__ import annotations

from dataclasses import dataclass

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder

CAUGHT_BY = "test_index_builds.py::test_a_table_that_was_dropped_since_the_plan[made-anew-create]"
SAYS = "expected a final error"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        try:
            return super().build(part)
        except spi.TableChanged as error:
            raise spi.Conflict("the fragments are others") from error


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("tells-tasks-that-came-late-of-races", Builder)
