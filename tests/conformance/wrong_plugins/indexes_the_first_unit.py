"""A task indexes the first of its files, and says that it did them all."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder
from laketier_lance.index_units import fragment_of

CAUGHT_BY = "test_index_answers.py::test_parts_answer_as_one"
SAYS = "the rows that"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        built = super().build(replace(part, units=part.units[:1]))
        told = json.loads(built.payload) | {"fragments": sorted(map(fragment_of, part.units))}
        return replace(built, part=part, rows=part.rows, payload=json.dumps(told))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("indexes-the-first-unit", Builder)
