"""The greatest text of a file is cut after 16 characters, with U+FFFF behind it, which Java takes for the greatest one.
Text that goes on with an emoji is greater."""

from __future__ import annotations

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_each_type[text-around-16]"
SAYS = "as the plain scan has them: expected"


class CutSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Leaf(column, spi.Op.EQ, str() as value) if texts := self.texts(entry, column):
                greatest = max(texts)
                return value <= (greatest if len(greatest) <= 16 else greatest[:16] + "\uffff")
        return super().may(entry, leaf)

    def texts(self, entry: FileEntry, name: str) -> list[str]:
        return [value for value in self.column(entry, name).to_pylist() if isinstance(value, str)]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("cuts-text-below-emoji", source=CutSource)
