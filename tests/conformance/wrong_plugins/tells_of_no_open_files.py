"""Files stay open over epochs, and who asks the table for them is told of none."""

from __future__ import annotations

from collections.abc import Sequence

from local import local
from open_json import OpenJson

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_open_files.py::test_epochs_of_one_process"
SAYS = "no file is open of which `open_files` does not tell"


class Maintenance(kit.ManifestMaintenance):
    def open_files(self) -> Sequence[spi.OpenDataFile]:
        return ()


class Harness(OpenJson):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("tells-of-no-open-files", Maintenance)
