"""A partition is known by the name of its folder, in small letters and without what a folder can't have: two values
share one, and a filter on it is thought to be done."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_partition_values.py::test_filters_on_several_partition_columns"
SAYS = "rows were read by the filter key = 'a'"


def folder(text: str | None) -> str:
    return "__null__" if text is None else re.sub(r"[^\w ]", "_", text).lower()


class FoldingSource(RicherSource):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        done = [
            leaf for leaf in filters if isinstance(leaf, spi.Leaf) and leaf.op is spi.Op.EQ and leaf.column == "key"
        ]
        kept = [e for e in snapshot.files() if all(self._in(e, leaf) for leaf in done if isinstance(leaf.value, str))]
        return kept, tuple(leaf for leaf in filters if leaf not in done or not isinstance(leaf.value, str))

    def _in(self, entry: FileEntry, leaf: spi.Leaf) -> bool:
        return not entry.partition or folder(dict(entry.partition)[leaf.column]) == folder(leaf.value)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("folds-partition-names", source=FoldingSource)
