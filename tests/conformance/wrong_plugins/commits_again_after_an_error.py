"""A commit that failed is made again, once, on a fresh look: also one that landed, and then was not synced."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_error_of_an_effect_is_no_conflict[error]"
SAYS = "and no other commit came: publish said OutsideTable"


class EagerCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except TimeoutError:
            raise
        except OSError:
            return super().publish(self.open(), results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("commits-again-after-an-error", committer=EagerCommitter)
