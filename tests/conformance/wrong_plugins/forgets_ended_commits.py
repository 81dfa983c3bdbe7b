"""A commit whose snapshot ended is not in the log any more, so it did not land. Who asks for it publishes it again."""

from __future__ import annotations

from local import folding

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier_localfile.folding import FoldingTable

CAUGHT_BY = "test_expiry.py::test_the_table_and_its_watermarks_stay"
SAYS = "expected that it landed, or UnknownOutcome, found that it did not"


class ForgetfulState(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        numbers = range(self.head.number, self.head.earliest - 1, -1)
        return any(self.manifests.read(number).commit_id == commit_id for number in numbers)


class ForgetfulTable(FoldingTable):
    def open(self) -> kit.ManifestState:
        found = super().open()
        return ForgetfulState(found.manifests, found.head, found.metadata)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return folding("forgets-ended-commits", ForgetfulTable)
