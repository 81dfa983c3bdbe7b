"""A listing of orphans leaves a note of what it found, in the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crooked import COLLECTS, CrookedPlugin, Sweeper

from laketier import spi
from laketier.registry import hookimpl


class NotingSweeper(Sweeper):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        found = super().orphans(modified_before)
        (Path(self.home) / "listed.log").write_text(f"{len(found)} orphans")
        return found


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("writes-while-listing", COLLECTS, maintenance=NotingSweeper)
