"""The rows of a commit are a column of 32 bits."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[plain]"
SAYS = "the stored watermark: expected"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    return replace(watermark, rows=watermark.rows & 0x7FFFFFFF)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("counts-rows-in-32-bits", stored)
