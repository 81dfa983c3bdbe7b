"""A task whose snapshot is gone ends in an error of Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder

CAUGHT_BY = "test_index_builds.py::test_a_snapshot_that_expired_since_the_plan"
SAYS = "an error of laketier's, found KeyError"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def opened(self) -> Any:
        try:
            return super().opened()
        except spi.SnapshotNotFound as error:
            raise KeyError(self.snapshot_id) from error


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("takes-snapshots-for-granted", Builder)
