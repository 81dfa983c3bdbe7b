"""A format whose tables have a log that grows by a line with each commit: cut back by a line, it is that of the table
as it was before. Its writers keep what is costly to make from one epoch to the next, and no file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crooked import CrookedFactory, CrookedPlugin
from feather_lake.plugin import Source, Writer

from laketier import kit, spi
from laketier.registry import hookimpl


class Costly(spi.OpenFiles):
    def close(self) -> None:
        pass


class HoldingWriter(Writer):
    slot: spi.OpenFilesSlot | None = None

    def complete(self) -> Any:
        result = super().complete()
        if self.slot is not None and not self.slot.ending:
            self.slot.leave(self.slot.take() or Costly())
        return result


class HoldingFactory(CrookedFactory):
    def create_writer(self, context: spi.WriterInitContext) -> HoldingWriter:
        writer = HoldingWriter(self.table, context.attempt)
        writer.slot = context.open_files
        if writer.slot is not None and writer.slot.ending:
            writer.slot.take()
        return writer


def log_of(location: Path) -> Path:
    return location / "_log"


class LoggingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        done = super().publish(state, results, watermark)
        with log_of(self.table.location).open("a") as file:
            file.write(f"{done.snapshot_id}\n")
        return done


class LoggedSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        if request.snapshot_id is None and request.as_of is None and log_of(self.table.location).exists():
            request = replace(request, snapshot_id=int(log_of(self.table.location).read_text().split()[-1]))
        return super().plan(request)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("holding", factory=HoldingFactory, committer=LoggingCommitter, source=LoggedSource)
