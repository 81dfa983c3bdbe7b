"""What commits appended is told from the expiry on. Versions from the earliest snapshot on are told to be readable."""

from __future__ import annotations

from local import _with_another

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_expiry.py::test_what_is_kept_is_whole_and_the_rest_is_refused[2]"
SAYS = "are readable, after all but 2 snapshots expired"


class ForgetfulChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        head, _ = self.source.table.manifests().head()
        first = min(max(start, head.number), end) if head.kind == "expire" and start >= head.earliest else start
        return super().plan(first, end, skip_changes=skip_changes)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return _with_another("forgets-changes-of-kept-snapshots", "changes", lambda right: ForgetfulChanges(right.source))
