"""Watermarks are JSON, which another tool reads and writes. It has floats alone."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[numbers]"
SAYS = "the token in the stored watermark"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    token = watermark.token
    return replace(watermark, token=replace(token, epoch=min(int(float(token.epoch)), 2**63 - 1)))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("keeps-epochs-as-floats", stored)
