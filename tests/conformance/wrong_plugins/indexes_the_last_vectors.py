"""An index of vectors has those of the last file of each part alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder
from laketier_lance.index_units import fragment_of

CAUGHT_BY = "test_vector_answers.py::test_the_nearest_through_an_index[ivf-flat]"
SAYS = "a ivf-flat index"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        if not self.spec.kind.value.startswith("ivf-"):
            return super().build(part)
        built = super().build(replace(part, units=part.units[-1:]))
        told = json.loads(built.payload) | {"fragments": sorted(map(fragment_of, part.units))}
        return replace(built, part=part, rows=part.rows, payload=json.dumps(told))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("indexes-the-last-vectors", Builder)
