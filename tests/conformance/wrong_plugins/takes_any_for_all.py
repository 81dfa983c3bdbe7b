"""A file is skipped unless each part of a condition can hold. That is right for `and`."""

from __future__ import annotations

from richer import BoundedSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_a_filter_loses_no_row_and_adds_none[or]"
SAYS = "rows of the filter 'or'"


class AllSource(BoundedSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Or(children) | spi.And(children):
                return all(self.may(entry, child) for child in children)
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("takes-any-for-all", source=AllSource)
