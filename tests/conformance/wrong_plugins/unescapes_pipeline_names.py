"""Names of pipelines are unescaped as they are read, and were not escaped when they were written."""

from __future__ import annotations

from urllib.parse import unquote

from crooked import CrookedPlugin
from keyed import keyed

from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[escaped]"
SAYS = "never published, and the table has"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("unescapes-pipeline-names", **keyed(unquote))
