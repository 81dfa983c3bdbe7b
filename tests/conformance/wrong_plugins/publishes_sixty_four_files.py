"""A commit is one request, which names so many files. What is beyond them waits for a second one that nobody makes."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_many_small_files_are_read_once"
SAYS = "a round of 105 tasks of a row each"
MOST = 64


class RequestingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        return super().publish(state, results[:MOST], watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("publishes-sixty-four-files", committer=RequestingCommitter)
