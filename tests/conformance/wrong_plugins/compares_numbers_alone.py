"""A commit is made if the table has as many commits as in the state. So has one that was made anew under its name."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_stale_states.py::test_a_table_recreated_with_as_many_commits"
SAYS = "an epoch is published against a state from before the table was made anew, with as many commits"


class NumberCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        now = self.open()
        same = isinstance(state, kit.ManifestState) and now.head.number == state.head.number
        return super().publish(now if same else state, results, watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("compares-numbers-alone", committer=NumberCommitter)
