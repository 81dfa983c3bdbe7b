"""A name of a pipeline is made tidy: several blanks become one."""

from __future__ import annotations

import re

from crooked import CrookedPlugin
from keyed import keyed

from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[stripped]"
SAYS = "never published, and the table has"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("joins-blanks", **keyed(lambda name: re.sub(" +", " ", name)))
