"""Of a staged file that is gone there is nothing to show, so a commit goes without it: as an UPDATE of no rows does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_discard.py::test_rows_that_were_deleted_are_not_published[aborted]"
SAYS = "a result is published of which all was aborted: expected LaketierError or CommitError, and no error was raised"


class CareFree(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        there = [
            replace(each, files=tuple(f for f in each.files if (self.table.location / f.path).exists()))
            for each in results
        ]
        return super().publish(state, there, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("publishes-what-was-aborted", committer=CareFree)
