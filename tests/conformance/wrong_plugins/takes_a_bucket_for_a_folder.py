"""Takes ``s3://bucket/warehouse`` for a path: the tables are in the working folder, on whichever machine that is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crooked import CrookedPlugin, CrookedStorage
from feather_lake.plugin import FEATURES

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore

CAUGHT_BY = "test_object_stores.py::test_rounds"
SAYS = "a table in a bucket has objects there: expected some keys, found none"


class Plugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return CrookedStorage(Path(config.warehouse).absolute(), self._parts)


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return {}


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Plugin("takes-a-bucket-for-a-folder", features={**FEATURES, spi.Feature.OBJECT_STORES: spi.FULL})
