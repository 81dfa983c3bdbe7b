"""Whether the settings of an index are of their types is found out by the tasks."""

from __future__ import annotations

from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_columns.py::test_settings_of_an_index_that_do_not_fit"
SAYS = "an index of kind "


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        with patch("laketier_lance.indexer.check_options", lambda *_, **__: None):
            return super().plan(spec, max_parts, mode)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("leaves-settings-to-the-tasks", indexer=Indexer)
