"""The number of a lease is a column of 32 bits."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[numbers]"
SAYS = "the token in the stored watermark"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    token = watermark.token
    return replace(watermark, token=replace(token, fence=token.fence & 0x7FFFFFFF))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("cuts-fences", stored)
