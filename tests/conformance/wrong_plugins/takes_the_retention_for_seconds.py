"""The retention of an expiry is in milliseconds, and is taken for one in seconds: divided once too often."""

from __future__ import annotations

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_expiry.py::test_what_is_young_is_kept"
SAYS = "files that were deleted within a retention of 50 times their age, in milliseconds"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        return super().expire(retention=retention // 1000, keep=keep, delete=delete)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("takes-the-retention-for-seconds", ExpiringMaintenance)
