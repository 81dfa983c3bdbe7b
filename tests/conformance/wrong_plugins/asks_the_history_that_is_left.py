"""A staged file is looked for in the snapshots that are left, and its file stays where the others ended."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin
from remembering_results import KnowingCommitter, compact, live

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_old_results.py::test_other_tools_moved_its_rows[compact]"
SAYS = "and its harness ended the snapshots that had them, were handed over again as a batch"

EARLIEST = "earliest"


class RecentCommitter(KnowingCommitter):
    def known(self, state: kit.ManifestState) -> set[str]:
        earliest = self.table.location / EARLIEST
        since = range(int(earliest.read_text()) if earliest.exists() else 0, state.head.number + 1)
        return live(state).union(entry.path for number in since for entry in state.manifests.read(number).added)


class Harness:
    def compact(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        compact(storage, table)

    def expire(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        (Path(table.location) / EARLIEST).write_text(str(table.snapshot_id))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("asks-the-history-that-is-left", committer=RecentCommitter)
