"""What is put together has the columns of its first file. Where that was written before a column came, the values of
this column in later files are gone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from feather_lake.plugin import FeatherTable
from lasting import LastingHarness, lasting

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_series.py::test_any_series[plain]"
SAYS = "a scan: expected"


class Harness(LastingHarness):
    def columns(self, own: FeatherTable, files: Sequence[FileEntry]) -> Sequence[str]:
        with pa.ipc.open_file(str(Path(own.location) / files[0].path)) as file:
            found: list[str] = file.schema.names
            return found


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return lasting("compacts-by-the-first-columns")
