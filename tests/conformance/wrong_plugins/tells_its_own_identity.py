"""A committer tells the identity of the table that it was made for, and does not look for the one that is there."""

from __future__ import annotations

from dataclasses import dataclass

from crooked import CrookedFactory, CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests.table import ManifestState
from laketier.registry import hookimpl

CAUGHT_BY = "test_stale_states.py::test_a_recreated_table"
SAYS = "the identity that a committer of the dropped table tells, of the table that was made anew"


@dataclass(frozen=True)
class RememberedState(ManifestState):
    remembered: str

    @property
    def table_uuid(self) -> str:
        return self.remembered


@dataclass(frozen=True)
class RememberingCommitter(kit.ManifestCommitter):
    identity: str = ""

    def open(self) -> ManifestState:
        state = super().open()
        return RememberedState(state.manifests, state.head, state.metadata, self.identity)


class RememberingFactory(CrookedFactory):
    def create_committer(self, context: spi.CommitterInitContext) -> kit.ManifestCommitter:
        return RememberingCommitter(self.parts.at(self.table), context, self.table.table_uuid)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("tells-its-own-identity", factory=RememberingFactory)
