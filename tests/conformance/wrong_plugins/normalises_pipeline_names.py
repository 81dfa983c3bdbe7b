"""Names of pipelines are brought to one normal form of Unicode, as file systems do."""

from __future__ import annotations

import unicodedata

from crooked import CrookedPlugin
from keyed import keyed

from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[normal-form]"
SAYS = "never published, and the table has"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("normalises-pipeline-names", **keyed(lambda pipeline: unicodedata.normalize("NFC", pipeline)))
