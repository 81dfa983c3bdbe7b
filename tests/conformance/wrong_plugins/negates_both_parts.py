"""That two are not both true is taken for that neither is: files are passed over whose rows have one of them each."""

from __future__ import annotations

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_within_filters"
SAYS = "rows were read by the filter Not(child=And("


class NegatingSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Not(spi.And(children)):
                return all(self.may(entry, spi.Not(child)) for child in children)
            case spi.Not(spi.Leaf(column, spi.Op.EQ, int() as value)):
                return set(self.column(entry, column).to_pylist()) != {value}
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("negates-both-parts", source=NegatingSource)
