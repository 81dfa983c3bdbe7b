"""A commit whose version another tool has forgotten is not in the history, so it never landed."""

from __future__ import annotations

from typing import Any

import clamps_expired_ranges as clamping
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_a_commit_that_expired_is_not_called_lost"
SAYS = "expected that it landed, or UnknownOutcome, found that it did not"


class Harness(clamping.Harness):
    pass


class ForgetfulState(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        first = Harness.forgotten.get(str(self.manifests.location), 0)
        return any(self.manifests.read(at).commit_id == commit_id for at in range(first, self.head.number + 1))


class ForgetfulTable(FeatherTable):
    def open(self) -> kit.ManifestState:
        found = super().open()
        return ForgetfulState(found.manifests, found.head, found.metadata)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    parts: dict[str, Any] = {"table": ForgetfulTable}
    return clamping.ForgettingPlugin("forgets-expired-commits", **parts)
