"""A builder that was trained still says that it needs training."""

from __future__ import annotations

from dataclasses import dataclass

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder
from laketier_lance.index_settings import is_vector

CAUGHT_BY = "test_index_builds.py::test_what_parts_share_is_trained_first"
SAYS = "that was trained needs training"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    @property
    def needs_training(self) -> bool:
        return is_vector(self.spec.kind)

    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        return LanceIndexBuilder(**vars(self)).build(part)

    def train(self) -> Builder:
        return Builder(**vars(LanceIndexBuilder(**vars(self)).train()))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("needs-training-for-ever", Builder)
