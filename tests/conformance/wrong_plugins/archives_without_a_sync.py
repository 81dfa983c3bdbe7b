"""Each commit has a note. When there are more than 32, the oldest go to an archive. It is written first, and not
synced: the notes are gone, and so may it be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from archives_by_deleting_first import KEPT, MOST, NotedTable
from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.durable import create_exclusively
from laketier.registry import hookimpl

CAUGHT_BY = "test_summaries.py::test_a_commit_that_sums_up_is_killed"
SAYS = "archive.json: a power cut loses it: the epoch is replayed"


class NotingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        table = self.table
        assert isinstance(table, NotedTable)
        note = Path(table.location) / f"note-{state.snapshot_id + 1:020d}.json"
        if not note.exists():
            create_exclusively(note, b"{}")
        done = super().publish(state, results, watermark)
        noted = sorted(table.noted().items())
        if len(noted) > MOST:
            whole = {*table.archived(), *(number for number, _ in noted[:-KEPT])}
            part = table.archive.with_suffix(".part")
            part.write_text(json.dumps(sorted(whole)), encoding="utf-8")
            part.replace(table.archive)
            for _, file in noted[:-KEPT]:
                file.unlink()
        return done


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("archives-without-a-sync", table=NotedTable, committer=NotingCommitter)
