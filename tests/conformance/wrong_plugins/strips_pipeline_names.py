"""Blanks around the name of a pipeline are taken for a slip of the user's."""

from __future__ import annotations

from crooked import CrookedPlugin
from keyed import keyed

from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[stripped]"
SAYS = "never published, and the table has"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("strips-pipeline-names", **keyed(str.strip))
