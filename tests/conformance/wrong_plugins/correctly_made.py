"""Made as the wrong plugins are, and right."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier.registry import hookimpl


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("correct")
