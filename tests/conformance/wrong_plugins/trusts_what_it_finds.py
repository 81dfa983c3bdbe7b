"""A manifest that is found was published, so it is taken for durable. Its maker was killed before it was."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_a_replay_makes_durable_what_it_finds"
SAYS = "and replayed; then the power was cut"


class Trusting(FeatherTable):
    def open(self) -> kit.ManifestState:
        manifests = self.manifests()
        self.check_folder()
        head, finished = manifests.head()
        if not finished:
            self.finish(manifests, head)
        return kit.ManifestState(manifests, head, manifests.metadata(head))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("trusts-what-it-finds", table=Trusting)
