"""A commit needs a setting that nobody made. No round goes well, so none is cut off in the middle either."""

from __future__ import annotations

import os
from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_answer_is_lost"
SAYS = "nothing came upon a request to round, and it ended in"


class UnsetCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        os.environ["NO_TEST_SETS_THIS"]
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("never-commits", committer=UnsetCommitter)
