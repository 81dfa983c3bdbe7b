"""How many snapshots stay is counted without the newest one, which is the table."""

from __future__ import annotations

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_expiry.py::test_what_is_kept_is_whole_and_the_rest_is_refused[2]"
SAYS = "the 2 newest snapshots [5, 6] stay, and 6 is the earliest"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        return super().expire(retention=retention, keep=max(1, keep - 1), delete=delete)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("keeps-one-snapshot-less", ExpiringMaintenance)
