"""A pipeline that is not known goes on from one whose name begins with its own and a dot: it was split in two once."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[prefixed]"
SAYS = "pipeline 'a' never published, and the table has Watermark"


class SplitState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        for name in (pipeline, *(name for name in self.pipelines() if name.startswith(f"{pipeline}."))):
            found = super().watermark(name)
            if found is not None:
                return replace(found, token=replace(found.token, pipeline=pipeline))
        return None


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("goes-on-from-a-longer-name", **told(SplitState))
