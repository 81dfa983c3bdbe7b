"""Whoever asks again is told that the table was made by this call, and loads into it what the first one did already."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from local import adopting

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.adoption import LocalFileAdoption

CAUGHT_BY = "test_adoption.py::test_again_is_the_same_table"
SAYS = "what is told of a table of before"


class ForgetfulAdoption(LocalFileAdoption):
    def adopt(self, path: spi.TablePath, **more: Any) -> spi.AdoptedTable:
        return replace(super().adopt(path, **more), made=True)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return adopting("adopts-each-time", ForgetfulAdoption)
