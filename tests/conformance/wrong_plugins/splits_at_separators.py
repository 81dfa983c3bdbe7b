"""A watermark's key is pipeline and run with a bar between them; what stands before the first bar is the name."""

from __future__ import annotations

from crooked import CrookedPlugin
from keyed import keyed

from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[separated]"
SAYS = "never published, and the table has"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("splits-at-separators", **keyed(lambda name: name.partition("|")[0]))
