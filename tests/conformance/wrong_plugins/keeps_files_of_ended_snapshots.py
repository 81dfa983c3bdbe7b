"""A snapshot ends, and its files are left to a clean-up that does not exist."""

from __future__ import annotations

from unittest.mock import patch

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_expiry.py::test_what_only_ended_snapshots_needed_is_gone"
SAYS = "files that were deleted, and those that were to be"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        with patch("laketier.kit.manifests.expiry.remove_files", lambda *_: []):
            return super().expire(retention=retention, keep=keep, delete=delete)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("keeps-files-of-ended-snapshots", ExpiringMaintenance)
