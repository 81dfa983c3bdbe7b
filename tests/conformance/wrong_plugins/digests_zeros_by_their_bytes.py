"""Which values a file has is looked up by digests of their bytes, for lists: of which 0.0 and -0.0 are two."""

from __future__ import annotations

import struct

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_filters_on_nan_infinity_and_zeros[f in (0.0, 5.0)]"
SAYS = "on NaN, infinity and zeros"


class DigestingSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or leaf.op is not spi.Op.IN:
            return super().may(entry, leaf)
        wanted = [value for value in leaf.value if type(value) is float]
        if len(wanted) < len(leaf.value):
            return True
        there = {struct.pack("d", value) for value in self.column(entry, leaf.column).to_pylist() if value is not None}
        return any(struct.pack("d", value) in there for value in wanted)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("digests-zeros-by-their-bytes", source=DigestingSource)
