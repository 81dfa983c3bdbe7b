"""Lakes of one format, for the suite of sources."""

from __future__ import annotations

from laketier_source_conformance.connectors import LakeHarness


class LocalFileLakeHarness(LakeHarness):
    lake_format = "localfile"


class DeltaLakeHarness(LakeHarness):
    lake_format = "delta"


class IcebergLakeHarness(LakeHarness):
    lake_format = "iceberg"


class LanceLakeHarness(LakeHarness):
    lake_format = "lance"
