"""A folder whose value has digits alone is of a number, whatever type was asked for: 007 is 7."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from local import adopting

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile import adoption
from laketier_localfile.adoption import LocalFileAdoption

CAUGHT_BY = "test_adoption.py::test_folders_are_partitions"
SAYS = "0 is '7', expected '007'"


def _number(text: str | None) -> str | None:
    return str(int(text)) if text is not None and text.isdigit() else text


class NumberAdoption(LocalFileAdoption):
    def adopt(self, path: spi.TablePath, **more: Any) -> spi.AdoptedTable:
        right = adoption.canonical_text
        with patch.object(adoption, "canonical_text", lambda text, kind: right(_number(text), kind)):
            return super().adopt(path, **more)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return adopting("takes-codes-for-numbers", NumberAdoption)
