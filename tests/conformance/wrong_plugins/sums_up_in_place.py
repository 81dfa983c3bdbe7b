"""After each tenth commit the table's files are summed up in a document, for a quick start. It is written under its own
name, and a process may be killed while it writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_summaries.py::test_a_commit_that_sums_up_is_killed"
SAYS = "of a commit that sums up those before it: the next round, of another pipeline, ended with CorruptTable"
EVERY = 10


class SummedTable(FeatherTable):
    def open(self) -> kit.ManifestState:
        newest = max(Path(self.location).glob("summary-*.json"), default=None)
        try:
            json.loads("{}" if newest is None else newest.read_text(encoding="utf-8"))
        except ValueError as error:
            raise spi.CorruptTable("the summary of the table can't be read", where=str(newest)) from error
        return super().open()


class SummingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        done = super().publish(state, results, watermark)
        number = done.snapshot_id
        if number % EVERY == 0:
            summary = Path(self.table.location) / f"summary-{number:020d}.json"
            summary.write_text(json.dumps({"number": number}), encoding="utf-8")
        return done


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sums-up-in-place", table=SummedTable, committer=SummingCommitter)
