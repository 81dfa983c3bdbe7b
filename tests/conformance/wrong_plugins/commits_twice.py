"""The watermark is written, and never found again: a replay publishes the epoch a second time."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Committer, Manifest

from laketier import spi
from laketier.registry import hookimpl


class ForgetfulState(Manifest):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        return None


class ForgetfulCommitter(Committer):
    def open(self) -> Manifest:
        return ForgetfulState(**vars(super().open()))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("commits-twice", committer=ForgetfulCommitter)
