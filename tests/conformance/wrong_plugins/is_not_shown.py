"""A task of an overwrite says that it can't be shown here, by the error with which the suite says so of itself."""

from __future__ import annotations

from crooked import CrookedFactory, CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.expect import NotShown

CAUGHT_BY = "test_overwrite.py::test_all_rows_are_replaced"
SAYS = "the plugin raised the suite's own NotShown"


class ShyFactory(CrookedFactory):
    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        if context.mode is spi.WriteMode.OVERWRITE:
            raise NotShown(spi.Feature.OVERWRITE, "it takes a server")
        return super().create_writer(context)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("is-not-shown", factory=ShyFactory)
