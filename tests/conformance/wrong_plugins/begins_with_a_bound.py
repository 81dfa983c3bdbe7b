"""A file has texts with a prefix if its least or its greatest text begins with it. Those between were forgotten."""

from __future__ import annotations

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_each_type[text-around-16]"
SAYS = "rows of v starts with 'aaaaaaaaaaaaaaaab' on string, as the plain scan has them"


class PrefixedSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or leaf.op is not spi.Op.STARTS_WITH:
            return super().may(entry, leaf)
        texts = [text for text in self.column(entry, leaf.column).to_pylist() if isinstance(text, str)]
        return not texts or min(texts).startswith(leaf.value) or max(texts).startswith(leaf.value)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("begins-with-a-bound", source=PrefixedSource)
