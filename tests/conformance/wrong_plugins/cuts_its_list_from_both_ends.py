"""Those of the snapshots that may end are `snapshots[: len(snapshots) - keep]`. Where one more is to be kept than there
are, the list is cut from its other end, and all but the newest of them end."""

from __future__ import annotations

from unittest.mock import patch

from local import local

from laketier import kit, spi
from laketier.kit.manifests import ManifestLog, expiry
from laketier.kit.manifests.manifest import Manifest
from laketier.registry import hookimpl

CAUGHT_BY = "test_expiry.py::test_what_is_young_is_kept"
SAYS = "snapshots, 8 of which were to be kept"
_right = expiry._first_to_stay


def _first_to_stay(manifests: ManifestLog, head: Manifest, before: int, keep: int) -> int:
    there = range(head.earliest, head.number + 1)
    return _right(manifests, head, before, len(there) - len(there[: len(there) - keep]))


class CuttingMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        with patch.object(expiry, "_first_to_stay", _first_to_stay):
            return super().expire(retention=retention, keep=keep, delete=delete)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("cuts-its-list-from-both-ends", CuttingMaintenance)
