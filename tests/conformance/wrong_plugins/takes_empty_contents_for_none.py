"""A database in which an empty text is null tells an epoch of a known content from one of which nothing is known no
more."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[long]"
SAYS = "the token in the stored watermark"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    return replace(watermark, token=replace(watermark.token, content=watermark.token.content or None))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("takes-empty-contents-for-none", stored)
