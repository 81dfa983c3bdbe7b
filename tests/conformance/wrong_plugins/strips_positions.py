"""Positions of a source are read from a table of texts, and blanks around them are no part of them, says the author."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[odd]"
SAYS = "the token in the stored watermark"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    token = watermark.token
    if token.source is None:
        return watermark
    source = replace(token.source, start=token.source.start.strip(), end=token.source.end.strip())
    return replace(watermark, token=replace(token, source=source))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("strips-positions", stored)
