"""What identifies the input of an epoch is a column of text that is not null."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[plain]"
SAYS = "the token in the stored watermark"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    token = watermark.token
    return replace(watermark, token=replace(token, content=token.content or ""))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("stores-no-content-as-text", stored)
