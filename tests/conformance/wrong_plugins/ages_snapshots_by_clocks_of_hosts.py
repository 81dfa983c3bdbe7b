"""How long a snapshot is not the newest any more is told by the date that its follower's host gave it."""

from __future__ import annotations

from local import local

from laketier import kit, spi
from laketier.kit.manifests.chain import back_from
from laketier.registry import hookimpl
from laketier.spi.clocks import host_time

CAUGHT_BY = "test_expiry.py::test_what_is_young_is_kept"
SAYS = "which was the newest a moment ago by the clock of the storage, where a day is the retention, is read"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        manifests = self.table.manifests()
        head, _ = manifests.head()
        before = host_time() - retention
        young = sum((each.at or 0) >= before for each in back_from(manifests, head, down_to=head.earliest))
        return super().expire(retention=0, keep=max(keep, young + 1 if retention else 1), delete=delete)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("ages-snapshots-by-clocks-of-hosts", ExpiringMaintenance)
