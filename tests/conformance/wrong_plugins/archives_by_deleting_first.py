"""Each commit has a note. When there are more than 32, the oldest go to an archive: they are deleted, and then it is
written."""

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
MOST, KEPT = 32, 20


class NotedTable(FeatherTable):
    def noted(self) -> dict[int, Path]:
        return {int(file.stem.removeprefix("note-")): file for file in Path(self.location).glob("note-*.json")}

    @property
    def archive(self) -> Path:
        return Path(self.location) / "archive.json"

    def archived(self) -> list[int]:
        return json.loads(self.archive.read_bytes()) if self.archive.exists() else []

    def open(self) -> kit.ManifestState:
        state = super().open()
        lost = set(range(1, state.snapshot_id + 1)) - set(self.noted()) - set(self.archived())
        if lost:
            raise spi.CorruptTable(f"the commits {sorted(lost)[:3]} have no note", where=str(self.location))
        return state


class NotingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        table = self.table
        assert isinstance(table, NotedTable)
        number = state.snapshot_id + 1
        (Path(table.location) / f"note-{number:020d}.json").write_text("{}", encoding="utf-8")
        done = super().publish(state, results, watermark)
        noted = sorted(table.noted().items())
        if len(noted) > MOST:
            old = [number for number, file in noted[:-KEPT] if file.unlink() is None]
            whole = json.dumps([*table.archived(), *old])
            part = table.archive.with_suffix(".part")
            part.write_text(whole, encoding="utf-8")
            part.replace(table.archive)
        return done


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("archives-by-deleting-first", table=NotedTable, committer=NotingCommitter)
