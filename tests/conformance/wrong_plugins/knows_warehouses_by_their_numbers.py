"""A warehouse that was opened before is known by the number of its folder, which a move takes along."""

from __future__ import annotations

import os
from dataclasses import replace

from crooked import CrookedPlugin, CrookedStorage

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_places.py::test_a_warehouse_that_was_moved_and_a_copy_in_its_place"
SAYS = "whether a new table of a warehouse that was moved is in the copy in its place: expected False, found True"
KNOWN: dict[int, str] = {}


class NumberingPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        place = config.warehouse
        if os.path.isdir(place):
            place = KNOWN.setdefault(os.stat(place).st_ino, place)
        return super().create_storage(replace(config, warehouse=place))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return NumberingPlugin("knows-warehouses-by-their-numbers")
