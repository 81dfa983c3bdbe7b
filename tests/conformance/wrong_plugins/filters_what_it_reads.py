"""A filter that the plan took is applied to the columns that are read. Is its own not one of them, it is left out."""

from __future__ import annotations

from sieving import SievingSource, sieving

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_filters_on_columns_that_are_not_read"
SAYS = "the number of rows of the filter 'gt', which the plan took, read by columns ('value',): expected 29, found 120"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return sieving("filters-what-it-reads", SievingSource)
