"""delta-rs takes a file that its author wrote. It does not look whether the file is on the device."""

from __future__ import annotations

from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl
from laketier_delta.plugin import DeltaPlugin

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = "'round' was answered, and no sync made durable the bytes of warehouse/db/t/laketier-"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(DeltaPlugin, "forgets-files-of-delta", writer="laketier_delta.writer.fsync_file")
