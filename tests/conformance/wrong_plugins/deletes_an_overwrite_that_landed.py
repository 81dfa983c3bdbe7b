"""An append that finds its name taken leaves its files to the caller. An overwrite tidies up at once: on
a mounted file system the name may be its own."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from takes_its_own_link_for_a_rivals import HastyTable, TidyCommitter

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[overwrite]"
SAYS = "the table can't be read"


class TidyOverwrites(TidyCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if self.context.mode is spi.WriteMode.OVERWRITE:
            return super().publish(state, results, watermark)
        return kit.ManifestCommitter.publish(self, state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("deletes-an-overwrite-that-landed", table=HastyTable, committer=TidyOverwrites)
