"""A history is kept beside the table for its next reader, for nobody else."""

from __future__ import annotations

import os
from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the mask of new files"


class MaskedHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        os.umask(0o077)
        return super().snapshots(limit)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("sets-the-mask-for-its-history", history=MaskedHistory)
