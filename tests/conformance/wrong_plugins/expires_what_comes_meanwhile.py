"""An expiry looks up which files the newest version needs, and then deletes all others that it finds."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_maintenance_races.py::test_work_of_others_comes_upon_maintenance[expire]"
SAYS = "an append by another process came before step 1, mkdir db/t/_expiring: the table can't be read"


class Harness:
    def expire(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        own: FeatherTable = storage.source(table).table  # type: ignore[attr-defined]
        state = own.open()
        needed = {file.path.rpartition("/")[2] for file in files_at(state.manifests, state.head.number)}
        (own.location / "_expiring").mkdir()
        for file in own.location.rglob("*.feather"):
            if file.name not in needed:
                file.unlink()
        (own.location / "_expiring").rmdir()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("expires-what-comes-meanwhile")
