"""Where the least text of a file begins as was asked, each one does: a filter for the others passes over the file."""

from __future__ import annotations

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_rows_of_several_batches"
SAYS = "rows were read by the filter Not(child=Leaf(column='t', op=<Op.STARTS_WITH: 'starts with'>, value='a'))"


class PrefixedSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Not(spi.Leaf(column, spi.Op.STARTS_WITH, str() as value)):
                texts = [text for text in self.column(entry, column).to_pylist() if text is not None]
                return not texts or not min(texts).startswith(value)
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("takes-the-least-text-for-all", source=PrefixedSource)
