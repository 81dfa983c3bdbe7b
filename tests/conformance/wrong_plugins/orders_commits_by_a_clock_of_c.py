"""The newest commit is the one of the latest moment, as the database tells it, which asks the C library's clock."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_clocks.py::test_rounds_of_a_host_whose_whole_clock_is_set_back"
SAYS = "a round of a host whose whole clock is ten days behind"
_NOW = "strftime('%Y-%m-%dT%H:%M:%f', 'now')"


def database(table: FeatherTable) -> sqlite3.Connection:
    found = sqlite3.connect(Path(table.location) / "moments.sqlite")
    found.execute("CREATE TABLE IF NOT EXISTS commits (number INTEGER, at TEXT)")
    return found


class MomentTable(FeatherTable):
    def open(self) -> kit.ManifestState:
        return self._newest(super().open())

    def state(self, info: spi.TableInfo) -> kit.ManifestState:
        return self._newest(super().state(info))

    def _newest(self, found: kit.ManifestState) -> kit.ManifestState:
        with database(self) as connection:
            row = connection.execute("SELECT number FROM commits ORDER BY at DESC, number DESC LIMIT 1").fetchone()
        connection.close()
        if row is None or row[0] >= found.head.number:
            return found
        return kit.ManifestState(found.manifests, found.manifests.read(row[0]), found.metadata)


class MomentCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        done = super().publish(state, results, watermark)
        with database(self.table) as connection:  # type: ignore[arg-type]
            connection.execute(f"INSERT INTO commits VALUES (?, {_NOW})", (done.snapshot_id,))
        connection.close()
        return done


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("orders-commits-by-a-clock-of-c", table=MomentTable, committer=MomentCommitter)
