"""A file has a digest of each of its decimals' texts, and one that is looked for has another text: 0.10 is 0.1."""

from __future__ import annotations

from decimal import Decimal

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_each_type[decimal-9-2]"
SAYS = "rows of v = Decimal('-1234567.8900') on decimal128(9, 2)"


class DigestSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or leaf.op is not spi.Op.EQ or not isinstance(leaf.value, Decimal):
            return super().may(entry, leaf)
        texts = {str(value) for value in self.column(entry, leaf.column).to_pylist()}
        return str(leaf.value) in texts


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("looks-decimals-up-by-their-texts", source=DigestSource)
