"""The data files are synced, and the folder that holds their names is not."""

from __future__ import annotations

from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.plugin import LancePlugin

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = "no sync made durable the name warehouse/db/t.lance/data"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(LancePlugin, "forgets-folders-of-lance", writer="laketier_lance.writer.fsync_directory")
