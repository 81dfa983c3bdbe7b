"""An overwrite gets files that were staged to append, and calls that a conflict: whoever is told so tries again."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedFactory, CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_an_overwrite_gets_what_was_staged_to_append"
SAYS = "found an error that tells of a race: Conflict(a file of an append is in an overwrite)"
APPENDED: set[str] = set()
"""Attempts of this process."""


class Factory(CrookedFactory):
    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        if context.mode is spi.WriteMode.APPEND:
            APPENDED.add(context.attempt)
        return super().create_writer(context)


class WrongCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        attempts = {result.attempt for result in results}
        if self.context.mode is spi.WriteMode.OVERWRITE and attempts & APPENDED:
            raise spi.Conflict("a file of an append is in an overwrite")
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("conflicts-over-what-was-appended", committer=WrongCommitter, factory=Factory)
