"""Staged files are looked at before an append alone. An overwrite lists files that are gone, and takes away those that
are there."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_a_staged_file_that_is_gone_is_not_published[overwrite]"
SAYS = "a staged file that is gone or another one is published by the format: expected Refused"


class UncheckedTable(FeatherTable):
    def check_staged(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        pass


class HastyCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if self.context.mode is not spi.WriteMode.OVERWRITE:
            return super().publish(state, results, watermark)
        own = kit.ManifestCommitter(UncheckedTable(self.table.location), self.context)
        return own.publish(state, results, watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("overwrites-with-what-is-gone", committer=HastyCommitter)
