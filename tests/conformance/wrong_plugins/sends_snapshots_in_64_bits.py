"""The snapshot that is asked for goes to a server as a number of 64 bits, and one of more fails as it is packed."""

from __future__ import annotations

import struct

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_an_unknown_snapshot_is_refused"
SAYS = "snapshot 9223372036854775808 is planned, which is not there: expected SnapshotNotFound"


class PackingSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        if request.snapshot_id is not None:
            struct.pack("q", request.snapshot_id)
        return super().plan(request)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sends-snapshots-in-64-bits", source=PackingSource)
