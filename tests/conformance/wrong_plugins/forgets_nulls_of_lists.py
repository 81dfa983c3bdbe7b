"""A negated list leaves nothing to the reader if no file has a value of the list. Nulls are forgotten: for those of the
column the negation is not true, and one in the list makes it true for no row."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_by_nan_and_by_lists_with_nothing"
SAYS = "expected the ids [0, 1, 10, 11, 30, 40, 41] (all rows, filtered by pyarrow), found [0, 1, 10, 11, 20, 30, 40"


class SettlingSource(RicherSource):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        kept, remaining = super().prune(snapshot, filters)
        return kept, tuple(each for each in remaining if not self._is_settled(each, kept))

    def _is_settled(self, predicate: spi.Predicate, files: Sequence[FileEntry]) -> bool:
        match predicate:
            case spi.Not(child=spi.Leaf(column=column, op=spi.Op.IN, value=values)):
                listed = set(values) - {None}
                return all(listed.isdisjoint(self.column(entry, column).to_pylist()) for entry in files)
        return False


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("forgets-nulls-of-lists", source=SettlingSource)
