"""Names of pipelines go through a library of C, to which the first zero byte is their end."""

from __future__ import annotations

from crooked import CrookedPlugin
from keyed import keyed

from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[invisible]"
SAYS = "never published, and the table has"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("ends-names-at-nul", **keyed(lambda name: name.partition("\x00")[0]))
