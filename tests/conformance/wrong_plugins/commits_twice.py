"""The watermark is written, and never found again: a replay publishes the epoch a second time."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_a_replay_writes_nothing"
SAYS = "the outcome of an epoch that is run again: expected RoundOutcome.ALREADY_THERE, found RoundOutcome.PUBLISHED"


class ForgetfulState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        return None


class ForgetfulCommitter(kit.ManifestCommitter):
    def open(self) -> kit.ManifestState:
        return ForgetfulState(**vars(super().open()))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("commits-twice", committer=ForgetfulCommitter)
