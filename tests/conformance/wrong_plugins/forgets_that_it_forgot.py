"""A watermark is kept in columns, one for each field of a token. Whether it was forgotten is no field of a token."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_adopt_rewind_and_forget"
SAYS = "an epoch is run whose pipeline was forgotten"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    token = watermark.token
    return replace(watermark, token=token, forgotten=False)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("forgets-that-it-forgot", stored)
