"""Watermarks are columns, whose names are short: eight hex digits of a hash of the pipeline's."""

from __future__ import annotations

import hashlib

from crooked import CrookedPlugin
from keyed import keyed

from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[hashed]"
SAYS = "never published, and the table has"


@hookimpl
def laketier_format() -> CrookedPlugin:
    parts = keyed(lambda name: hashlib.sha256(name.encode()).hexdigest()[:8], listed=False)
    return CrookedPlugin("hashes-pipeline-names", **parts)
