"""Each tenth commit sums up the table's files, and readers begin with the newest summary. One that can't be read is
passed over, and they go on with the commits after it: somebody thought that nothing of them is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_older_files.py::test_a_file_of_a_long_history_is_damaged"
SAYS = "of a history of 34 commits is cut: all rows, which are told and not refused: expected 10 rows, found 5"
EVERY = 10


class SummingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        done = super().publish(state, results, watermark)
        manifests = self.table.manifests()
        if manifests.head()[0].number % EVERY == 0:
            head = manifests.head()[0]
            paths = [entry.path for entry in ManifestSnapshot(manifests, head, head, settled=True).files()]
            Path(self.table.location, f"summary-{head.number:020d}.json").write_text(json.dumps(paths))
        return done


class SummedSource(Source):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        newest = snapshot.manifest.number
        found = {int(file.stem[8:]): file for file in Path(self.table.location).glob("summary-*.json")}
        first = max((number for number in found if number <= newest), default=0)
        if not first:
            return super().prune(snapshot, filters)
        try:
            paths = set(json.loads(found[first].read_bytes()))
        except ValueError:
            paths = set()
        for number in range(first + 1, newest + 1):
            paths |= {entry.path for entry in snapshot.manifests.read(number).added}
        return [entry for entry in snapshot.files() if entry.path in paths], filters


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("passes-over-a-damaged-summary", source=SummedSource, committer=SummingCommitter)
