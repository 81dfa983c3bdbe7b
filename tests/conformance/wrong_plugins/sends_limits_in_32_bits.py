"""A limit goes to a server as a number of 32 bits, and one of more fails as it is packed."""

from __future__ import annotations

import struct

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_a_limit[2147483648]"
SAYS = "as a scan is planned (LakeSource.plan): expected no error"


class PackingSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        if request.limit is not None:
            struct.pack("i", request.limit)
        return super().plan(request)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sends-limits-in-32-bits", source=PackingSource)
