"""What a task built has no bytes: nobody can tell what a build costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder

CAUGHT_BY = "test_index_tellings.py::test_what_a_part_tells"
SAYS = "the bytes of its files are 0"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        return replace(super().build(part), size=0)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("tells-no-size-of-parts", Builder)
