"""Data files are for their user and his group, whatever the process's mask says."""

from __future__ import annotations

import os

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_files_are_for_whom_the_mask_says"
SAYS = "under the mask 0002 everybody can't read the table"


class ModeWriter(Writer):
    def complete(self) -> spi.WriteResult:
        if self._file is not None:
            os.chmod(self._path, 0o640)
        return super().complete()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("gives-files-one-mode", writer=ModeWriter)
