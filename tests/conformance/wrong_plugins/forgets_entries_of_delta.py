"""delta-rs names an entry of the log before its bytes are on the device, and nobody looks after them."""

from __future__ import annotations

from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl
from laketier_delta.plugin import DeltaPlugin

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = "a power cut loses it: the table can't be read"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(DeltaPlugin, "forgets-entries-of-delta", committer="laketier_delta.committer.make_durable")
