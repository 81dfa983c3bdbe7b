"""A watermark is a file with the name of its pipeline, and the name of a file has 255 letters."""

from __future__ import annotations

from crooked import CrookedPlugin
from keyed import keyed

from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[cut-at-200]"
SAYS = "never published, and the table has"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("cuts-names-at-a-files", **keyed(lambda name: name[:255]))
