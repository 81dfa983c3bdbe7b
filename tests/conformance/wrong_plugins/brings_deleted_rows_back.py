"""A staged file is looked for among the live files of the table, and others deleted its rows since."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from remembering_results import KnowingCommitter, compact, live

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_old_results.py::test_other_tools_moved_its_rows[delete_rows]"
SAYS = "of which the rows were deleted, were handed over again as a batch: expected 5 rows, found 10"


class LiveCommitter(KnowingCommitter):
    def known(self, state: kit.ManifestState) -> set[str]:
        return live(state)


class Harness:
    def delete_rows(self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int]) -> None:
        compact(storage, table, ids)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("brings-deleted-rows-back", committer=LiveCommitter)
