"""A limit that is too small is found out by the tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder

CAUGHT_BY = "test_index_builds.py::test_limits_of_a_build_of_words"
SAYS = "words are indexed within"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def within(self, resources: spi.IndexResources) -> Self:
        return replace(self, resources=resources)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("takes-any-limit", Builder)
