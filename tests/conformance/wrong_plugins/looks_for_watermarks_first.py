"""A table is opened by two looks: the first is for the watermarks, and the second for all else. A round that another
driver of the pipeline publishes in between is there twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_meanwhile.py::test_a_round_comes_meanwhile[append]"
SAYS = "the table was opened at the snapshot of that round, with the watermark of before it"


@dataclass(frozen=True)
class EarlyState(kit.ManifestState):
    marks: Mapping[str, str] = field(default_factory=dict)

    def watermark(self, pipeline: str) -> spi.Watermark | None:
        text = self.marks.get(pipeline)
        return None if text is None else spi.Watermark.from_json(text)


class LookingCommitter(kit.ManifestCommitter):
    def open(self) -> kit.ManifestState:
        first, _ = self.table.manifests().head()
        then = super().open()
        return EarlyState(then.manifests, then.head, then.metadata, first.watermarks)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("looks-for-watermarks-first", committer=LookingCommitter)
