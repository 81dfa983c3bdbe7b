"""A commit reads all others that came since its factory was made. Others expired them, and what a stream's next epoch
asks for is gone, until somebody starts it again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_rounds_go_on_after_others_expired_snapshots"
SAYS = "is run after others expired all snapshots but the newest, and orphans were collected, by a factory of before"
EARLIEST = "earliest"


class ReadingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        earliest = self.table.location / EARLIEST
        left = int(earliest.read_text()) if earliest.exists() else 0
        for after in (each.after or 0 for each in results):
            if after + 1 < left:
                raise FileNotFoundError(f"manifest {after + 1}")
        return super().publish(state, results, watermark)


class Harness:
    def expire(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        (Path(table.location) / EARLIEST).write_text(str(table.snapshot_id))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-each-commit-since-it-began", committer=ReadingCommitter)
