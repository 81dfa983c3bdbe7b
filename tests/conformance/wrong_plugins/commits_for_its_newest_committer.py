"""Which commit is being made is noted when its committer is. A process had one stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from crooked import CrookedFactory, CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_state.py::test_a_committer_is_closed_beside_another"
SAYS = "rows of a committer that appends, after another one of its process"


class NotingFactory(CrookedFactory):
    newest: ClassVar[list[spi.CommitterInitContext]] = []

    def create_committer(self, context: spi.CommitterInitContext) -> kit.ManifestCommitter:
        self.newest[:] = [context]
        return super().create_committer(context)


class NotingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        [newest] = NotingFactory.newest
        return kit.ManifestCommitter.publish(replace(self, context=newest), state, results, watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("commits-for-its-newest-committer", factory=NotingFactory, committer=NotingCommitter)
