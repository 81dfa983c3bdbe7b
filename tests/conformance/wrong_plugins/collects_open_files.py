"""A file that is still open lies where files are staged, and is taken for an orphan."""

from __future__ import annotations

from collections.abc import Sequence

from local import local
from open_json import OpenJson

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_open_files.py::test_others_come_between"
SAYS = "rows after a collection of orphans between two epochs"


class Maintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        return [file for file in self._staged() if file.modified_at < modified_before]


class Harness(OpenJson):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("collects-open-files", Maintenance)
