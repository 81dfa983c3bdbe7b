"""A sync of a folder is taken for one of all that is in it: the file's own is left out."""

from __future__ import annotations

from unittest.mock import patch

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.kit.durable import fsync_directory
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = "and no sync made durable the bytes of warehouse/db/t/"


class FolderWriter(Writer):
    def complete(self) -> spi.WriteResult:
        with patch("laketier.kit.one_file.fsync_file", lambda path: fsync_directory(path.parent)):
            return super().complete()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("syncs-the-folder-for-the-file", writer=FolderWriter)
