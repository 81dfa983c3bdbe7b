"""Publishes what a result says, without a look at the files."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from feather_lake.plugin import Committer

from laketier import spi
from laketier.registry import hookimpl


class TrustingCommitter(Committer):
    def check(self, results: Sequence[spi.WriteResult]) -> None:
        pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("publishes-what-is-gone", committer=TrustingCommitter)
