"""Where a watermark is not, the history is asked whether the pipeline ever wrote. Others expire the history, too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_a_pipeline_that_others_erased_is_not_a_new_one"
SAYS = "erased what the table kept of it, and expired what told of it: expected RoundOutcome.ALREADY_THERE"
ERASED, EXPIRED = "erased", "expired"


@dataclass(frozen=True)
class AskingState(kit.ManifestState):
    upto: int = -1
    is_told: bool = True

    def watermark(self, pipeline: str) -> spi.Watermark | None:
        mark = super().watermark(pipeline)
        if mark is None or (mark.snapshot_id or 0) > self.upto:
            return mark
        if self.is_told:
            raise spi.RolledBack("the history has rounds of the pipeline, and the table no watermark", where=pipeline)
        return None


class AskingCommitter(kit.ManifestCommitter):
    def open(self) -> kit.ManifestState:
        erased, expired = self.table.location / ERASED, self.table.location / EXPIRED
        upto = int(erased.read_text()) if erased.exists() else -1
        return AskingState(**vars(super().open()), upto=upto, is_told=not expired.exists())


class Harness:
    def erase(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        (Path(table.location) / ERASED).write_text(str(table.snapshot_id))

    def expire(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        (Path(table.location) / EXPIRED).touch()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("asks-what-others-may-expire", committer=AskingCommitter)
