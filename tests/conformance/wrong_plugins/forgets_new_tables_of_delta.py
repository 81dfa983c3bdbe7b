"""A round syncs its entry of the log. The first one, which makes the table, is left as delta-rs wrote it."""

from __future__ import annotations

from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl
from laketier_delta.plugin import DeltaPlugin

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = "'make' was answered, and no sync made durable the bytes of warehouse/db/t/_delta_log/00000000000000000000.json"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(DeltaPlugin, "forgets-new-tables-of-delta", catalog="laketier_delta.catalog.make_durable")
