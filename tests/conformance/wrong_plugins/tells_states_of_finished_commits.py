"""A state is that of the last commit whose every step was done: one that was cut off may be taken back, it is thought.
Readers see it all the same."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_cut_off.py::test_each_way_to_read_a_commit_that_was_cut_off"
SAYS = "rows by a plain plan, beside the watermark of the state"


class StatedTable(FeatherTable):
    def state(self, info: spi.TableInfo) -> kit.ManifestState:
        manifests = self.manifests()
        head, finished = manifests.head()
        if not finished:
            head = manifests.read(head.number - 1)
        return kit.ManifestState(manifests, head, manifests.metadata(head))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("tells-states-of-finished-commits", table=StatedTable)
