"""A batch whose answer was lost is not recognised, and written again."""

from __future__ import annotations

from crooked import CrookedPlugin
from remembering_results import UnaskingCommitter

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_unknown_outcomes.py::test_the_effect_landed_and_the_answer_was_lost[batch]"
SAYS = "a round whose answer was lost: expected (RoundOutcome.RECOVERED, 10), found (RoundOutcome.PUBLISHED, 10)"


class BlindState(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        return False


class BlindCommitter(UnaskingCommitter):
    def open(self) -> kit.ManifestState:
        return BlindState(**vars(super().open()))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("never-landed", committer=BlindCommitter)
