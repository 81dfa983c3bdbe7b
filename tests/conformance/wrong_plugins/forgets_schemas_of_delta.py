"""A new column is an entry of the log that holds no row, so nobody syncs it."""

from __future__ import annotations

from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl
from laketier_delta.plugin import DeltaPlugin

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[alter]"
SAYS = "alter, 'alter' was answered, and no sync made durable the bytes of warehouse/db/t/_delta_log/"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(DeltaPlugin, "forgets-schemas-of-delta", catalog="laketier_delta.altering.make_durable")
