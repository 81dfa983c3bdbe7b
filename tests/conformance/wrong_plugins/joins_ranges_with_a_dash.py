"""The range of a source is one text, with a dash between its ends. The first dash is looked for."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[separators]"
SAYS = "the token in the stored watermark"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    token = watermark.token
    if token.source is None:
        return watermark
    start, end = f"{token.source.start}-{token.source.end}".split("-", 1)
    return replace(watermark, token=replace(token, source=spi.SourceRange(start, end)))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("joins-ranges-with-a-dash", stored)
