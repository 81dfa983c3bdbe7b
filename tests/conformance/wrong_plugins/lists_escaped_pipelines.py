"""Names of pipelines are escaped where they are stored, and listed as they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[cleaned]"
SAYS = "the table lists the pipelines ['a%20b', 'a%25b'"


class EscapedState(kit.ManifestState):
    def pipelines(self) -> Sequence[str]:
        return [quote(name, safe="") for name in super().pipelines()]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("lists-escaped-pipelines", **told(EscapedState))
