"""What was asked to be deleted is told to be gone."""

from __future__ import annotations

from unittest.mock import patch

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_expiry.py::test_what_only_ended_snapshots_needed_is_gone"
SAYS = "files that are to be deleted after all of them were deleted"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        with patch("laketier.kit.manifests.expiry.remove_files", lambda _, files: list(files)):
            return super().expire(retention=retention, keep=keep, delete=delete)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("tells-of-files-that-it-keeps", ExpiringMaintenance)
