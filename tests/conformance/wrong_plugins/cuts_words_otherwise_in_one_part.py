"""A host with other settings builds one of the parts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder

CAUGHT_BY = "test_index_answers.py::test_parts_answer_as_one"
SAYS = "the rows that"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        built = super().build(part)
        if part.number != 1:
            return built
        other = {**self.spec.options, "lower_case": False} if self.spec.kind is spi.IndexKind.INVERTED else {}
        forged = LanceIndexBuilder(**{**vars(self), "spec": replace(self.spec, options=other)}).build(part)
        told = {key: value for key, value in json.loads(built.payload).items() if key in ("kind", "details")}
        payload = json.dumps(json.loads(forged.payload) | told)
        return replace(forged, settings=built.settings, payload=payload)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("cuts-words-otherwise-in-one-part", Builder)
