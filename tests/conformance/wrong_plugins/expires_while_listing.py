"""What would be deleted is found out by doing so."""

from __future__ import annotations

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_expiry.py::test_listing_ends_nothing"
SAYS = "files that are deleted by who only lists what has expired"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        return super().expire(retention=retention, keep=keep, delete=True)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("expires-while-listing", ExpiringMaintenance)
