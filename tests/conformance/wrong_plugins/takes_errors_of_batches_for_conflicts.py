"""With a pipeline an error is an error. A batch without one is begun anew: whatever came upon it is a conflict."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_error_of_an_effect_is_no_conflict[denied]"
SAYS = "and no other commit came: publish said Conflict"


class HastyCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except OSError as error:
            if watermark is not None or isinstance(error, TimeoutError):
                raise
            raise spi.Conflict("the commit failed", where=str(self.table.location)) from error


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-errors-of-batches-for-conflicts", committer=HastyCommitter)
