"""A setting that is None is refused, as it is of no type."""

from __future__ import annotations

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_builds.py::test_settings_that_are_none"
SAYS = "an index is built with the settings"


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        if None in spec.options.values():
            raise spi.ConfigError("a setting is None", where=spec.name)
        return super().plan(spec, max_parts, mode)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("refuses-settings-that-are-none", indexer=Indexer)
