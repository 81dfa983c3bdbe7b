"""An expiry deletes the files that only old snapshots need, and then ends these snapshots. Who is killed in between
leaves snapshots that are listed, and can't be read."""

from __future__ import annotations

from local import local

from laketier import kit, spi
from laketier.kit.manifests.committer import next_manifest
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[expiry]"
SAYS = "is listed, and can't be read: expected its rows, or SnapshotNotFound as it has ended"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        found = super().expire(retention=retention, keep=keep, delete=False)
        if not delete or not found.files:
            return found
        removed = tuple(self.remove_orphans(found.files))
        state = self.table.open()
        mark = next_manifest(state.head, commit_id=spi.new_attempt_id(), kind="expire", earliest=found.earliest)
        self.table.finish(state.manifests, state.manifests.append(mark))
        return spi.Expiry(found.earliest, state.head.number, found.files, removed)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("deletes-before-it-ends-snapshots", ExpiringMaintenance)
