"""What is older than the retention is told by the clock of the host that expires it."""

from __future__ import annotations

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier.spi.clocks import host_time

CAUGHT_BY = "test_expiry.py::test_what_is_young_is_kept"
SAYS = "files that a host deleted within the retention, whose clock is two days ahead"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        ahead = host_time() - self.table.store.now()
        return super().expire(retention=max(0, retention - ahead), keep=keep, delete=delete)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("expires-by-its-own-clock", ExpiringMaintenance)
