"""Whether a commit landed never changes, so it is looked for once: also one that was not there yet."""

from __future__ import annotations

from dataclasses import dataclass

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_unknown_outcomes.py::test_an_error_before_the_effect[batch]"
SAYS = "whose second one landed without an answer"
_KNOWN: dict[str, bool] = {}


@dataclass(frozen=True)
class State(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        if commit_id not in _KNOWN:
            _KNOWN[commit_id] = super().landed(commit_id)
        return _KNOWN[commit_id]


class Table(FeatherTable):
    def open(self) -> kit.ManifestState:
        state = super().open()
        return State(state.manifests, state.head, state.metadata)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("remembers-that-a-commit-is-absent", table=Table)
