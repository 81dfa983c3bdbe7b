"""Files are listed once, and what came or went while they were looked at is nobody's affair."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from local import adopting

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.adoption import LocalFileAdoption
from laketier_localfile.lying import LyingFiles

CAUGHT_BY = "test_adoption.py::test_files_that_change_meanwhile[more]"
SAYS = "rows of a table one of whose files was more while they were looked at"


class HastyAdoption(LocalFileAdoption):
    def adopt(self, path: spi.TablePath, **more: Any) -> spi.AdoptedTable:
        with patch.object(LyingFiles, "refuse_changed", lambda *_: None):
            return super().adopt(path, **more)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return adopting("adopts-what-lay-there-first", HastyAdoption)
