"""Overwriting is declared unsupported, and silently appends instead of being refused."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_overwrite.py::test_all_rows_are_replaced"
SAYS = "overwrite is declared unsupported, and was not refused"


@hookimpl
def laketier_format() -> CrookedPlugin:
    lacking = {**FEATURES, spi.Feature.OVERWRITE: spi.unsupported("appending is all it can do")}
    return CrookedPlugin("ignores-what-it-lacks", features=lacking)
