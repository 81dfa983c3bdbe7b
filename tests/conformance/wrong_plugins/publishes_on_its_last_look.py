"""A committer keeps what it opened last, and publishes on that: whoever looked again did so to see something newer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_state.py::test_a_committer_looks_afresh_each_time"
SAYS = "a commit is published against a stale state, and its committer has looked again: expected Conflict"


@dataclass(frozen=True)
class Keeping(kit.ManifestCommitter):
    opened: list[kit.ManifestState] = field(default_factory=list)

    def open(self) -> kit.ManifestState:
        self.opened.append(super().open())
        return self.opened[-1]

    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        return super().publish(self.opened[-1], results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("publishes-on-its-last-look", committer=Keeping)
