"""An index is told with the name that its column had when it was built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_changes.py::test_a_column_is_renamed[its-publish]"
SAYS = "its column"


_COLUMNS: dict[str, str] = {}


class Indexer(LanceIndexer):
    def indexes(self) -> Sequence[spi.IndexInfo]:
        return [replace(each, column=_COLUMNS.setdefault(each.name, each.column)) for each in super().indexes()]


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("tells-former-names-of-columns", indexer=Indexer)
