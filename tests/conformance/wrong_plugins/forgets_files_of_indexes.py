"""The commit of an index is synced, and the files that its tasks wrote are not."""

from __future__ import annotations

from dataclasses import dataclass
from unittest.mock import patch

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder

CAUGHT_BY = "test_power.py::test_indexes_survive"
SAYS = "no sync made durable"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        with patch("laketier_lance.index_builder._sync"):
            return super().build(part)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("forgets-files-of-indexes", Builder)
