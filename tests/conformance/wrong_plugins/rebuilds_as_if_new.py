"""A table that was made again of its files is one of files that lay there. Its pipelines begin anew, and double it."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from local import adopting

from laketier import spi
from laketier.kit.manifests.manifest import ADOPTED
from laketier.registry import hookimpl
from laketier_localfile import rebuilding
from laketier_localfile.adoption import LocalFileAdoption

CAUGHT_BY = "test_adoption.py::test_a_table_is_rebuilt_of_its_files"
SAYS = "the first epoch of a pipeline of before is published again: expected RolledBack or WatermarkLost, and no error"


class NewAdoption(LocalFileAdoption):
    def rebuild(self, path: spi.TablePath, **more: Any) -> spi.AdoptedTable:
        with patch.object(rebuilding, "REBUILT", ADOPTED):
            return super().rebuild(path, **more)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return adopting("rebuilds-as-if-new", NewAdoption)
