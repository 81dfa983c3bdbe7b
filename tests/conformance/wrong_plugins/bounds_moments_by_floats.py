"""The least moment of a file is kept as a number of JSON, which one reader takes for a float: of the year 9999 it is
rounded to 32 microseconds."""

from __future__ import annotations

from datetime import datetime, timedelta

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_each_type[timestamp-us]"
SAYS = "as the plain scan has them"
EPOCH = datetime(1970, 1, 1)


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


class BoundedSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Leaf(column, spi.Op.EQ, datetime() as value) if value.tzinfo is None:
                found = [each for each in self.column(entry, column).to_pylist() if type(each) is datetime]
                plain = [micros(each) for each in found if each.tzinfo is None]
                return not plain or float(min(plain)) <= micros(value) <= float(max(plain))
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("bounds-moments-by-floats", source=BoundedSource)
