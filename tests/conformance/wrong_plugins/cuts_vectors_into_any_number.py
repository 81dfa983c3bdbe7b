"""Whether the sub-vectors that were asked for cut a vector into equal parts is found out by the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_settings import _check_fit
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_columns.py::test_settings_of_an_index_that_do_not_fit"
SAYS = "and built, as the plan was not refused"


def _fits(options: Mapping[str, Any], *more: Any) -> None:
    _check_fit({**options, "num_sub_vectors": 2} if "num_sub_vectors" in options else options, *more)


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        with patch("laketier_lance.index_settings._check_fit", _fits):
            return super().plan(spec, max_parts, mode)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("cuts-vectors-into-any-number", indexer=Indexer)
