"""A task names its folder by its part, so that two runs write into one."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder

CAUGHT_BY = "test_index_answers.py::test_a_task_that_runs_twice[in-turn]"
SAYS = "have a segment in common"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        built = super().build(part)
        name = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.plan_id}{part.number}")
        folder = Path(self.location, "_indices", str(name))
        if folder.exists():
            shutil.rmtree(folder)
        Path(self.location, "_indices", built.segment).rename(folder)
        return replace(built, segment=str(name))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("writes-into-one-folder", Builder)
