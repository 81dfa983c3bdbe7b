"""Partitions are skipped by their text, and text has -1 before -9, and 10 before 9."""

from __future__ import annotations

import operator

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.kit.partition import partition_text
from laketier.registry import hookimpl

CAUGHT_BY = "test_partition_values.py::test_filters_on_partitions[int]"
SAYS = "rows were read by the filter key < -1"
COMPARED = {spi.Op.LT: operator.lt, spi.Op.LE: operator.le, spi.Op.GT: operator.gt, spi.Op.GE: operator.ge}


class TextualSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if isinstance(leaf, spi.Leaf) and leaf.op in COMPARED and leaf.column in dict(entry.partition):
            text, literal = dict(entry.partition)[leaf.column], partition_text(leaf.value)
            return text is not None and literal is not None and COMPARED[leaf.op](text, literal)
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("orders-partitions-as-text", source=TextualSource)
