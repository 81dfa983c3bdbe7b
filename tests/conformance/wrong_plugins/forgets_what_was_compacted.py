"""A staged file is looked for among the live files of the table, and a compaction put its rows elsewhere."""

from __future__ import annotations

from crooked import CrookedPlugin
from remembering_results import KnowingCommitter, compact, live

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_old_results.py::test_other_tools_moved_its_rows[compact]"
SAYS = "of which the files were compacted, were handed over again as a batch: expected 10 rows, found 15"


class LiveCommitter(KnowingCommitter):
    def known(self, state: kit.ManifestState) -> set[str]:
        return live(state)


class Harness:
    def compact(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        compact(storage, table)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("forgets-what-was-compacted", committer=LiveCommitter)
