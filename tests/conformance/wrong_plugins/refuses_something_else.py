"""Overwriting is declared unsupported, and refused as if it were another feature."""

from __future__ import annotations

from crooked import CrookedFactory, CrookedPlugin
from feather_lake.plugin import FEATURES, Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_capabilities.py::test_overwrite_is_offered_on_both_sides"
SAYS = "overwrite is declared unsupported, and bucketing was refused instead"

LACKING = {**FEATURES, spi.Feature.OVERWRITE: spi.unsupported("appending is all it can do")}


class MuddledFactory(CrookedFactory):
    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        if context.mode is spi.WriteMode.OVERWRITE:
            spi.require("refuses-something-else", LACKING, spi.Feature.BUCKETING)
        return super().create_writer(context)

    def create_committer(self, context: spi.CommitterInitContext) -> kit.ManifestCommitter:
        if context.mode is spi.WriteMode.OVERWRITE:
            spi.require("refuses-something-else", LACKING, spi.Feature.BUCKETING)
        return super().create_committer(context)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("refuses-something-else", features=LACKING, factory=MuddledFactory)
