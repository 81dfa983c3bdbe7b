"""A watermark counts as long as the snapshot that carried it is there. Others expire it, and the pipeline is new."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_rounds_go_on_after_others_expired_snapshots"
SAYS = "expected RoundOutcome.ALREADY_THERE, found RoundOutcome.PUBLISHED"
EARLIEST = "earliest"


@dataclass(frozen=True)
class ForgettingState(kit.ManifestState):
    left: int = 0

    def watermark(self, pipeline: str) -> spi.Watermark | None:
        mark = super().watermark(pipeline)
        return mark if mark is None or (mark.snapshot_id or 0) >= self.left else None


class ForgettingCommitter(kit.ManifestCommitter):
    def open(self) -> kit.ManifestState:
        earliest = self.table.location / EARLIEST
        left = int(earliest.read_text()) if earliest.exists() else 0
        return ForgettingState(**vars(super().open()), left=left)


class Harness:
    def expire(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        (Path(table.location) / EARLIEST).write_text(str(table.snapshot_id))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-an-expired-pipeline-for-new", committer=ForgettingCommitter)
