"""A commit tells its moment for the snapshot that it made. Two commits of one millisecond have one name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier.spi.clocks import host_time

CAUGHT_BY = "test_clocks.py::test_rounds_of_one_moment"
SAYS = "three commits of one moment are three snapshots, and their ids are"


class MomentCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        return replace(super().publish(state, results, watermark), snapshot_id=host_time())


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("names-commits-by-their-moments", committer=MomentCommitter)
