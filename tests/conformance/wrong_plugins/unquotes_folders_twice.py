"""The library that lists folders has taken the escapes out of their names, and then the format does."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch
from urllib.parse import unquote

from local import adopting

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile import adoption
from laketier_localfile.adoption import LocalFileAdoption

CAUGHT_BY = "test_adoption.py::test_folders_are_partitions"
SAYS = "texts of rows, by the names of their folders: expected 15 entries, found 15; 5 are other than expected"


class TwiceAdoption(LocalFileAdoption):
    def adopt(self, path: spi.TablePath, **more: Any) -> spi.AdoptedTable:
        right = adoption.canonical_text
        with patch.object(adoption, "canonical_text", lambda text, kind: right(text and unquote(text), kind)):
            return super().adopt(path, **more)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return adopting("unquotes-folders-twice", TwiceAdoption)
