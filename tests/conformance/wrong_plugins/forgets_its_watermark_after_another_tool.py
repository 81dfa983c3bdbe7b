"""The watermark is that of the newest commit. That of another tool has none."""

from __future__ import annotations

from crooked import CrookedPlugin
from marked_by_others import ForeignHarness, marked_by_others

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_tables.py::test_rounds_on_a_foreign_table"
SAYS = "epoch 0 is replayed after its tool did what the harness calls appends"


class Harness(ForeignHarness):
    pass


class NewestState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        found = super().watermark(pipeline)
        return found if found is None or found.commit_id == self.head.commit_id else None


class ForgetfulCommitter(kit.ManifestCommitter):
    def open(self) -> kit.ManifestState:
        return NewestState(**vars(super().open()))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return marked_by_others("forgets-its-watermark-after-another-tool", committer=ForgetfulCommitter)
