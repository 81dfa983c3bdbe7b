"""Lakes of one format, for the suite of sources."""

from __future__ import annotations

from laketier_source_conformance.connectors import LakeHarness
from laketier_source_conformance.harness import SourceHarness


class LocalFileLakeHarness(LakeHarness):
    lake_format = "localfile"


class NothingExpiresHarness(LocalFileLakeHarness):
    """Whose author did not get to it."""

    expire = SourceHarness.expire


class DeltaLakeHarness(LakeHarness):
    lake_format = "delta"


class IcebergLakeHarness(LakeHarness):
    lake_format = "iceberg"


class LanceLakeHarness(LakeHarness):
    lake_format = "lance"
