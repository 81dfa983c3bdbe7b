"""A range that ends where it begins has read nothing, so it is stored as none."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[closed]"
SAYS = "the token in the stored watermark"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    source = watermark.token.source
    if source is None or source.start != source.end:
        return watermark
    return replace(watermark, token=replace(watermark.token, source=None))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("takes-empty-ranges-for-none", stored)
