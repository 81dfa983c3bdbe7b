"""Rows that are handed over again become those of the newer commit, as `UPDATE rows SET since = ?` has it. The
snapshots that had them have them no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_old_results.py::test_an_overwrite_took_its_rows_away"
SAYS = "rows of the snapshot of before 5 results of a batch, of which nothing has come since, were handed over again"


def since(location: Path, path: str) -> Path:
    return location.with_name(f"{location.name}.since") / path


class MovingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        try:
            return super().publish(state, results, watermark)
        except spi.OutsideTable:
            done = super().publish(state, [], watermark)
        for file in (file for result in results for file in result.files):
            moved = since(state.manifests.location, file.path)
            moved.parent.mkdir(exist_ok=True)
            moved.write_text(str(done.snapshot_id))
        return done


class MovedSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        moved = [since(self.table.location, split.payload.path) for split in plan.splits]
        later = [path.exists() and int(path.read_text()) > (plan.snapshot_id or 0) for path in moved]
        kept = [split for split, is_later in zip(plan.splits, later, strict=True) if not is_later]
        return replace(plan, splits=tuple(replace(split, index=index) for index, split in enumerate(kept)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("moves-rows-to-the-newer-commit", committer=MovingCommitter, source=MovedSource)
