"""Watermarks are where any tool may replace them. A table without one is one that the pipeline never wrote to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_a_pipeline_that_others_erased_is_not_a_new_one"
SAYS = "expected RoundOutcome.ALREADY_THERE, found RoundOutcome.PUBLISHED"
ERASED = "erased"


@dataclass(frozen=True)
class ForgettingState(kit.ManifestState):
    upto: int = -1

    def watermark(self, pipeline: str) -> spi.Watermark | None:
        mark = super().watermark(pipeline)
        return mark if mark is None or (mark.snapshot_id or 0) > self.upto else None


class ForgettingCommitter(kit.ManifestCommitter):
    def open(self) -> kit.ManifestState:
        erased = self.table.location / ERASED
        upto = int(erased.read_text()) if erased.exists() else -1
        return ForgettingState(**vars(super().open()), upto=upto)


class Harness:
    def erase(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        (Path(table.location) / ERASED).write_text(str(table.snapshot_id))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-an-erased-pipeline-for-new", committer=ForgettingCommitter)
