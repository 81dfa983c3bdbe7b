"""Data files are made as temporary files are: nobody but their user may read them, whatever the umask says."""

from __future__ import annotations

import os

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_files_are_for_whom_the_mask_says"
SAYS = "under the mask 0027 a group can't read the table: warehouse/db/"


class ClosedWriter(Writer):
    def complete(self) -> spi.WriteResult:
        result = super().complete()
        for file in result.files:
            os.chmod(self._path.with_name(file.path), 0o600)
        return result


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("writes-for-its-user-alone", writer=ClosedWriter)
