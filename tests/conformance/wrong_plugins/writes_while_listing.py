"""A listing of orphans leaves a note of what it found, in the table."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_listing_changes_nothing"
SAYS = "files that changed when orphans were listed: expected [], found ['listed.log'"


class NotingSweeper(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        found = super().orphans(modified_before)
        (self.table.location / "listed.log").write_text(f"{len(found)} orphans")
        return found


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("writes-while-listing", maintenance=NotingSweeper)
