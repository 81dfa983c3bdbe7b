"""A condition is taken off the reader's list if its first part was taken."""

from __future__ import annotations

from sieving import FirstPartSource, sieving

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_a_filter_loses_no_row_and_adds_none[and-first]"
SAYS = "rows of the filter 'and-first'"


class AndSource(FirstPartSource):
    whole = spi.And


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return sieving("takes-the-first-of-and", AndSource)
