"""Commits are looked through for the files of a round from the newest of its results on. An old result beside a new one
is published once more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_old_results.py::test_an_overwrite_took_its_rows_away"
SAYS = "were handed over again beside a new one of the row 77: expected 10 rows, found 15"


class ForwardCommitter(kit.ManifestCommitter):
    def _refuse_named(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        newest = max((each.after for each in results if each.files and each.after is not None), default=None)
        super()._refuse_named(state, [replace(each, after=newest) for each in results])


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("looks-back-from-the-newest-result", committer=ForwardCommitter)
