"""Expiry is promised, and its author wrote the part that looks."""

from __future__ import annotations

from dataclasses import replace

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_expiry.py::test_what_only_ended_snapshots_needed_is_gone"
SAYS = "expected that the oldest of 7 ends, found that snapshot 0 is the earliest"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        listed = super().expire(retention=retention, keep=keep, delete=False)
        return replace(listed, earliest=self.table.open().head.earliest, files=())


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("expires-nothing", ExpiringMaintenance)
