"""The range of a source is stored as its two ends, each in a field: what else it says is left out."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[stamp]"
SAYS = "the token in the stored watermark"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    source = watermark.token.source
    if source is None:
        return watermark
    return replace(watermark, token=replace(watermark.token, source=spi.SourceRange(source.start, source.end)))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("cuts-the-stamps-of-ranges", stored)
