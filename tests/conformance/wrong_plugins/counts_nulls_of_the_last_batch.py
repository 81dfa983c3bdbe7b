"""How many nulls a column has is counted for each batch, and the last count stays."""

from __future__ import annotations

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_rows_of_several_batches"
SAYS = "rows were read by the filter n is null"


class CountingSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or leaf.op is not spi.Op.IS_NULL:
            return super().may(entry, leaf)
        chunks = self.column(entry, leaf.column).chunks
        return not chunks or bool(chunks[-1].null_count)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("counts-nulls-of-the-last-batch", source=CountingSource)
