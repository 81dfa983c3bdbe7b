"""Publishes what a result says, without a look at the files."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_a_staged_file_that_is_gone_is_not_published[append]"
SAYS = "a staged file that is gone or another one is published by the format: expected Refused, and no error was raised"


class TrustingTable(FeatherTable):
    def check_staged(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("publishes-what-is-gone", table=TrustingTable)
