"""Who goes on as a pipeline is kept in a column of its own, whose texts have 128 letters at most."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[closed]"
SAYS = "the stored watermark"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    return replace(watermark, renamed_to=watermark.renamed_to and watermark.renamed_to[:128])


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("cuts-the-names-of-those-who-go-on", stored)
