"""Files of old snapshots go, and nothing says that the snapshots did: who opens one reads what is left."""

from __future__ import annotations

from dataclasses import replace

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_expiry.py::test_what_is_kept_is_whole_and_the_rest_is_refused[2]"
SAYS = "snapshot 0 is planned, and the earliest is 5"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        if not delete:
            return super().expire(retention=retention, keep=keep, delete=False)
        told = super().expire(retention=retention, keep=keep, delete=False)
        removed = self.remove_orphans(told.files)
        return replace(told, removed=tuple(removed))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("keeps-opening-expired-snapshots", ExpiringMaintenance)
