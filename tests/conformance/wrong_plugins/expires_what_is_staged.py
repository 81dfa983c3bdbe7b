"""Whatever no snapshot names goes with the snapshots: also what a round is about to publish."""

from __future__ import annotations

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_expiry.py::test_what_a_round_staged_is_left_alone"
SAYS = "files that were staged before older snapshots expired are published: found StagedFileLost"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        done = super().expire(retention=retention, keep=keep, delete=delete)
        if delete:
            self.remove_orphans(self.orphans(1 << 50))
        return done


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("expires-what-is-staged", ExpiringMaintenance)
