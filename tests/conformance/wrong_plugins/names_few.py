"""Correct, and from before most features: it names only what it does."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES

from laketier.registry import hookimpl


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("names-few", {feature: support for feature, support in FEATURES.items() if support.full})
