"""The history tells how many rows a commit added by how many more there are after it. An overwrite adds its rows, and
takes others away: the history tells the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lasting import LastingHarness, lasting

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_series.py::test_any_series[plain]"
SAYS = "rows, pipeline and epoch of snapshot"


class Harness(LastingHarness):
    pass


class DifferingHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        manifests = self.table.manifests()

        def there(number: int) -> int:
            return sum(entry.rows for entry in files_at(manifests, number)) if number >= 0 else 0

        return [
            replace(line, rows=max(0, there(line.snapshot_id) - there(line.snapshot_id - 1)))
            for line in super().snapshots(limit)
        ]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return lasting("counts-rows-by-what-was-there", history=DifferingHistory)
