"""Rows are added to an index with the settings that it has: whoever asks for others is not told that it has not got
them."""

from __future__ import annotations

from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_answers_after_rounds_and_an_append"
SAYS = "is planned (append) with False: expected ConfigError or FeatureNotSupported, and no error was raised"


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        if mode in (spi.IndexMode.APPEND, spi.IndexMode.MERGE):
            spec = replace(spec, options={})
        return super().plan(spec, max_parts, mode)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("adds-to-an-index-with-any-settings", indexer=Indexer)
