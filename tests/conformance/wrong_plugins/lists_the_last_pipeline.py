"""The pipelines of a table are told by its newest commit, which names its own."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[case]"
SAYS = "the table lists the pipelines ['ORDERS'], and those that published are ['ORDERS', 'Orders', 'orders']"


class LastState(kit.ManifestState):
    def pipelines(self) -> Sequence[str]:
        return [name for name in super().pipelines() if self.own(name)]

    def own(self, name: str) -> bool:
        mark = self.watermark(name)
        return mark is not None and mark.commit_id == self.head.commit_id


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("lists-the-last-pipeline", **told(LastState))
