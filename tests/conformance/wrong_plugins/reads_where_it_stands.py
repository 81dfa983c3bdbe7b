"""Paths are kept relative to the driver's folder, so that they are short. An executor runs in another one."""

from __future__ import annotations

import os
from pathlib import Path

from crooked import CrookedPlugin, CrookedStorage
from feather_lake.plugin import FeatherTable, Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_executors.py::test_an_executor_reads_a_split"
SAYS = "an executor reads a split with what it was given"


class ShortStorage(CrookedStorage):
    def source(self, table: spi.TableInfo) -> Source:
        return Source(FeatherTable(Path(os.path.relpath(table.location))))


class ShortPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return ShortStorage(Path(config.warehouse), self._parts)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return ShortPlugin("reads-where-it-stands")
