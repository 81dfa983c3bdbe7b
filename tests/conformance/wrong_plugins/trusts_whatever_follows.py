"""A driver whose name was free looks whether the table is past it, and takes any later commit for one of its own
history."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit.manifests.log import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_torn.py::test_a_driver_from_before_a_file_was_damaged[followed]"
SAYS = "its own commit is acknowledged, and the table can't be read since: CorruptTable"


class Log(ManifestLog):
    def _refuse_reused_name(self, number: int, sha256: str) -> None:
        if not self.exists(number + 1):
            super()._refuse_reused_name(number, sha256)


class Table(FeatherTable):
    def manifests(self) -> ManifestLog:
        return Log.open(self.place, self.layout)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("trusts-whatever-follows", table=Table)
