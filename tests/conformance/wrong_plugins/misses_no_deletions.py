"""A list of deleted rows that is not there has no rows. So where it was lost, they are back."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from crooked import CrookedPlugin
from leaving import deletions
from sequenced import CompactingHarness, SequencedSource

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_lives.py::test_a_file_of_a_deletion_is_damaged"
SAYS = "deleted.json, which came with a deletion, is gone: expected a refusal, the 8 rows that are left, or all 10 in"


class Harness(CompactingHarness):
    def delete_rows(self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int]) -> None:
        """It is a commit."""
        super().delete_rows(storage, table, ids)
        committer = storage.tiering_factory(table).create_committer(spi.CommitterInitContext(spi.new_attempt_id()))
        committer.publish(committer.open(), [], None)


class CommittedSource(SequencedSource):
    def gone(self, path: str) -> pa.Array:
        head, _ = self.table.manifests().current()
        return pa.array([int(each) for each, at in deletions(self.table).items() if at < head.number], pa.int64())


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("misses-no-deletions", source=CommittedSource)
