"""A task of a table with buckets lays its rows into the right ones, and tells the bucket of none of its files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import forgetful

from laketier import spi
from laketier.kit.parquet import ClosedFile
from laketier.registry import hookimpl
from laketier_delta.plugin import DeltaPlugin
from laketier_delta.storage import DeltaTieringFactory
from laketier_delta.writer import DeltaWriter

CAUGHT_BY = "test_layout.py::test_buckets"
SAYS = "the buckets that a task tells of its files"


class Writer(DeltaWriter):
    def _staged(self, file: ClosedFile) -> spi.StagedFile:
        return replace(super()._staged(file), bucket=None)


class Factory(DeltaTieringFactory):
    def create_writer(self, context: spi.WriterInitContext) -> DeltaWriter:
        return Writer(self.table, self.location, self.options, context.attempt, self.limits)


class NoBucketPlugin(DeltaPlugin):
    identifier = "stages-files-of-no-bucket"

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        made = storage.tiering_factory
        forgetful.replace(storage, "tiering_factory", lambda table: Factory(**vars(made(table))))
        return storage  # type: ignore[no-any-return]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return NoBucketPlugin()
