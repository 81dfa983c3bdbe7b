"""A drop of an index is answered before it is on the device."""

from __future__ import annotations

from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_power.py::test_indexes_survive"
SAYS = "no sync made durable"


class Indexer(LanceIndexer):
    def drop(self, name: str) -> None:
        with patch("laketier_lance.indexer.make_durable"):
            super().drop(name)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("forgets-drops-of-indexes", indexer=Indexer)
