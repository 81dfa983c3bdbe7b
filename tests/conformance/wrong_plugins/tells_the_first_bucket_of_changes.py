"""Splits of changes have the bucket that a split begins with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier_localfile.plugin import LocalFilePlugin

CAUGHT_BY = "test_layout_changes.py::test_appended_rows_of_buckets"
SAYS = "the bucket that a split of changes tells is that of its rows"


class BucketedChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        plan = super().plan(start, end, skip_changes=skip_changes)
        return replace(plan, splits=tuple(replace(split, bucket=0) for split in plan.splits))


class BucketedPlugin(LocalFilePlugin):
    identifier = "tells-the-first-bucket-of-changes"

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        made = storage.changes
        object.__setattr__(storage, "changes", lambda table: BucketedChanges(made(table).source))
        return storage  # type: ignore[no-any-return]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return BucketedPlugin()
