"""A moment of which no snapshot is left is read as the oldest one that is."""

from __future__ import annotations

from dataclasses import replace

from local import reading

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_expiry.py::test_what_is_kept_is_whole_and_the_rest_is_refused[1]"
SAYS = "which has expired: expected SnapshotNotFound, and no error was raised"


class KindSource(LocalFileSource):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        try:
            return super().plan(request)
        except spi.SnapshotNotFound:
            head, _ = self.table.manifests().head()
            if request.as_of is None or not head.earliest:
                raise
            return super().plan(replace(request, as_of=None, snapshot_id=head.earliest))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("reads-the-oldest-snapshot-for-an-expired-moment", KindSource)
