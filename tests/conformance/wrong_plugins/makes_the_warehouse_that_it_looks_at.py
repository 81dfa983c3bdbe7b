"""Whoever opens a warehouse makes its folder, so that nobody need ask for it later."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin, CrookedStorage

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_mount_that_can_only_be_read"
SAYS = (
    "a warehouse that is not there is on a mount that can only be read, and who asks for tables meets EROFS from mkdir"
)


class MakingPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        Path(config.warehouse).mkdir(parents=True, exist_ok=True)
        return super().create_storage(config)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return MakingPlugin("makes-the-warehouse-that-it-looks-at")
