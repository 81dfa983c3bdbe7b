"""A split that a filter cut names the file that it reads, as any other does. Whoever rewrites the split replaces that
file, and with it the rows that did not pass."""

from __future__ import annotations

from dataclasses import replace

from sieving import SievingSource, sieving

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert.py::test_a_split_that_is_cut_names_no_file"
SAYS = "a split that a filter by the key cut names no file: found the keys {2} of {1, 2}"


class NamingSource(SievingSource):
    def sieved(self, split: spi.LakeSplit, taken: spi.Leaf, limit: int | None) -> spi.LakeSplit:
        return replace(super().sieved(split, taken, limit), files=split.files)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return sieving("names-files-it-filtered", NamingSource)
