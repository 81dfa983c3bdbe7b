"""What is behind a question mark is no part of a path, so a warehouse of another version is the same one."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin, CrookedStorage

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_places.py::test_a_warehouse_that_is_named_oddly[{folder}?version=3]"
SAYS = "what is behind the name is passed over"


class CuttingPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return super().create_storage(replace(config, warehouse=config.warehouse.partition("?")[0]))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CuttingPlugin("cuts-names-of-warehouses")
