"""A process that has synced a folder knows it, and does not sync it again for the next file in it."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.kit.durable import fsync_directory
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = "and no sync made durable the name"
_SYNCED: set[Path] = set()


def _once(folder: Path) -> None:
    if folder not in _SYNCED:
        fsync_directory(folder)
        _SYNCED.add(folder)


class ForgoingWriter(Writer):
    def complete(self) -> spi.WriteResult:
        with patch("laketier.kit.one_file.fsync_directory", _once):
            return super().complete()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("syncs-each-folder-once", writer=ForgoingWriter)
