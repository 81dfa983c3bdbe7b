"""A watermark is kept in columns that were made before pipelines could be renamed. There is none for the new name."""

from __future__ import annotations

from dataclasses import replace

from marked import marked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_pipeline_goes_on_under_another_name"
SAYS = "the format gives the watermark of pipeline 'q' back without its `renamed_to`"


def stored(watermark: spi.Watermark) -> spi.Watermark:
    return replace(watermark, renamed_to=None)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked("keeps-no-new-names", stored)
