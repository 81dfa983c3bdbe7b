"""A part of a condition that can be pushed down is pushed down, also where another part is enough."""

from __future__ import annotations

from sieving import FirstPartSource, sieving

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_a_filter_loses_no_row_and_adds_none[or-first]"
SAYS = "rows of the filter 'or-first'"


class OrSource(FirstPartSource):
    whole = spi.Or


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return sieving("takes-the-first-of-or", OrSource)
