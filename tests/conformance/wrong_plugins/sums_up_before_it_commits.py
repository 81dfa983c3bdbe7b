"""Each tenth commit is summed up in a document, which readers begin with. It is written before its commit, so that no
reader finds the one without the other; and one that is there stays. But another driver's commit may get the number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.kit.durable import create_exclusively
from laketier.kit.manifests import FileEntry, ManifestSnapshot, files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_summaries.py::test_a_commit_that_sums_up_is_killed"
SAYS = "of a commit that sums up those before it"
EVERY = 10


def summary(location: object, number: int) -> Path:
    return Path(str(location)) / f"summary-{number:020d}.json"


class SummingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        number = state.head.number + 1
        if number % EVERY == 0:
            there = [entry.path for entry in files_at(state.manifests, state.head.number, state.head)]
            added = [file.path for result in results for file in result.files]
            with suppress(FileExistsError):
                create_exclusively(summary(self.table.location, number), json.dumps([*there, *added]).encode())
        return super().publish(state, results, watermark)


class SummedSource(Source):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        number, entries = snapshot.manifest.number, snapshot.files()
        at = number - number % EVERY
        if at and (document := summary(self.table.location, at)).exists():
            # What is not in it, and was there then, is of no commit that counts.
            then = {entry.path for entry in files_at(snapshot.manifests, at)}
            known = json.loads(document.read_bytes())
            entries = [entry for entry in entries if entry.path in known or entry.path not in then]
        return entries, filters


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sums-up-before-it-commits", source=SummedSource, committer=SummingCommitter)
