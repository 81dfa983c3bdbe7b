"""A bitmap of numbers has the rows of the last file of each part alone: filters through it lose the others."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder
from laketier_lance.index_units import fragment_of

CAUGHT_BY = "test_index_answers.py::test_filters_through_an_index[bitmap]"
SAYS = "a bitmap index in 3 parts: the rows where size"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        if self.spec.kind is not spi.IndexKind.BITMAP:
            return super().build(part)
        built = super().build(replace(part, units=part.units[-1:]))
        told = json.loads(built.payload) | {"fragments": sorted(map(fragment_of, part.units))}
        return replace(built, part=part, rows=part.rows, payload=json.dumps(told))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("filters-through-half-an-index", Builder)
