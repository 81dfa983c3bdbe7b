"""A discard cleans the folder of all that the newest manifest does not name, also what others have just staged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import Committer

from laketier import spi
from laketier.registry import hookimpl


class SweepingCommitter(Committer):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        live = {file for file, _, _ in self.open().files}
        for path in Path(self.home).glob("*.feather"):
            if path.name not in live:
                path.unlink()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("discards-too-much", committer=SweepingCommitter)
