"""A watermark is a property, whose name may not hold everything: the rest becomes an underscore."""

from __future__ import annotations

import re

from crooked import CrookedPlugin
from keyed import keyed

from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[cleaned]"
SAYS = "never published, and the table has"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("cleans-pipeline-names", **keyed(lambda pipeline: re.sub(r"[^A-Za-z0-9_.-]", "_", pipeline)))
