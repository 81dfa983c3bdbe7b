"""Which files are live can't be told, as the table can't be read: then none of them is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_a_table_fails[orphans]"
SAYS = "is told of files that are none"


class HastyMaintenance(kit.ManifestMaintenance):
    def orphans(self, before: int) -> Sequence[spi.OrphanFile]:
        try:
            return super().orphans(before)
        except (OSError, spi.LaketierError):
            now = int(datetime.now(UTC).timestamp() * 1000)
            files = self.table.location.glob("*.feather")
            return [spi.OrphanFile(file.name, 1, now, "data") for file in files]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("collects-unseen", maintenance=HastyMaintenance)
