"""Whatever the disk says against a new manifest, somebody else must have been there first."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_unknown_outcomes.py::test_a_time_out_is_no_conflict[pipeline]"
SAYS = "a step of publish timed out and no other commit came: publish said Conflict"


class HastyCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except OSError as error:
            raise spi.Conflict("another writer was first", where=str(self.table.location)) from error


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-errors-for-conflicts", committer=HastyCommitter)
