"""The bytes of a commit are summed up as its library tells them, which is in floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_the_counts_are_those_of_the_files"
SAYS = "LakeCommitter.publish answers what its contract says: expected bytes of LakeCommitResult to be int, found 1"


class FloatingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        commit = super().publish(state, results, watermark)
        return replace(commit, bytes=float(commit.bytes))  # type: ignore[arg-type]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("counts-bytes-as-floats", committer=FloatingCommitter)
