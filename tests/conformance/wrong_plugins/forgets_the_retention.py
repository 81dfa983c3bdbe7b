"""Old is what another snapshot took the place of, however short a time ago."""

from __future__ import annotations

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_expiry.py::test_what_is_young_is_kept"
SAYS = "files that were deleted within the retention"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        return super().expire(retention=0, keep=keep, delete=delete)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("forgets-the-retention", ExpiringMaintenance)
