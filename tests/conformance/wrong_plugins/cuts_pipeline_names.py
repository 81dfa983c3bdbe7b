"""The column for names of pipelines holds 60 letters; the database cuts the rest."""

from __future__ import annotations

from crooked import CrookedPlugin
from keyed import keyed

from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[cut-at-60]"
SAYS = "never published, and the table has"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("cuts-pipeline-names", **keyed(lambda pipeline: pipeline[:60]))
