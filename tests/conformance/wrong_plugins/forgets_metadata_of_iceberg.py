"""SQLite syncs the row that points to a metadata file. pyiceberg does not sync the file."""

from __future__ import annotations

import io

from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl
from laketier_iceberg.plugin import IcebergPlugin

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = ".metadata.json: a power cut loses it: the table can't be read"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    close = "laketier_iceberg.durable_io._Stream.close"
    return forgetful(IcebergPlugin, "forgets-metadata-of-iceberg", committer=close, instead=io.FileIO.close)
