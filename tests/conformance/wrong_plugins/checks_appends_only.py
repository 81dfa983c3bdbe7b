"""Staged files are looked at where they are appended. The way of an overwrite was written later, by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_a_staged_file_that_is_gone_is_not_published[overwrite]"
SAYS = "a staged file that is gone or another one is published by the format: expected Refused, and no error was raised"


class TrustingTable(FeatherTable):
    def check_staged(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        pass


class LateCommitter(kit.ManifestCommitter):
    def publish(self, state: Any, results: Sequence[spi.WriteResult], watermark: Any) -> spi.LakeCommitResult:
        if self.context.mode is spi.WriteMode.APPEND:
            FeatherTable(self.table.location).check_staged(state, results)
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("checks-appends-only", table=TrustingTable, committer=LateCommitter)
