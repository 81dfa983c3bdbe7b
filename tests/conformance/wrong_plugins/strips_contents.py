"""What identifies the input of a round is a digest, to which blanks around it do not belong, says the author."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[odd]"
SAYS = "the token in the stored watermark"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    token = watermark.token
    return replace(watermark, token=replace(token, content=token.content and token.content.strip()))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("strips-contents", stored)
