"""Nothing sums up the history: each reader opens a file for each commit that there ever was."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_a_long_history_opens_few_files"
SAYS = "who asks for the rows of a table opens"


class PlainTable(FeatherTable):
    def finish(self, manifests: ManifestLog, head: Manifest) -> None:
        self.settle(manifests, head)
        manifests.note_head(head)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-each-commit", table=PlainTable)
