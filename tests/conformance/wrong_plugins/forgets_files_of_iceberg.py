"""Names of data files are synced in their folder, and the files themselves are not."""

from __future__ import annotations

from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl
from laketier_iceberg.plugin import IcebergPlugin

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = ".parquet: a power cut loses it: the table can't be read"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(IcebergPlugin, "forgets-files-of-iceberg", writer="laketier_iceberg.files.fsync_file")
