"""Staged files are looked at where asserts are, and not under `python -O`."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_executors.py::test_checks_are_made_without_asserts"
SAYS = "in a process that runs with `python -O`, a result is published whose files are gone"


class TrustingTable(FeatherTable):
    def check_staged(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        if __debug__:
            super().check_staged(state, results)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("checks-where-asserts-do", table=TrustingTable)
