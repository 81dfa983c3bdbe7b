"""A limit that a kind of index has not is refused as if somebody else had come first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder

CAUGHT_BY = "test_indexing.py::test_what_does_not_fit_is_refused_before_a_task_runs"
SAYS = "is to be built within a byte"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def within(self, resources: spi.IndexResources) -> Any:
        try:
            return super().within(resources)
        except spi.FeatureNotSupported as error:
            raise spi.Conflict("there is no such limit") from error


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("tells-limits-it-has-not-of-races", Builder)
