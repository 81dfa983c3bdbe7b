"""Lance closes its files, and leaves the rest to the operating system."""

from __future__ import annotations

from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.plugin import LancePlugin

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = ".lance: a power cut loses it: the table can't be read"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(LancePlugin, "forgets-files-of-lance", writer="laketier_lance.writer.fsync_file")
