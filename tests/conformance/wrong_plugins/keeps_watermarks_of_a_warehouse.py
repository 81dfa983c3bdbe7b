"""A watermark is kept by the name of its pipeline, beside the tables. A pipeline has one table, says the author."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.kit.manifests.table import ManifestState
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_a_pipeline_has_a_watermark_in_each_table"
SAYS = "of one pipeline, in table 1 of three"


class SharedState(ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        mark = super().watermark(pipeline)
        note = note_of(self.manifests.location, pipeline)
        if mark is None and note.exists():
            return spi.Watermark.from_json(note.read_text())
        return mark


def note_of(location: Path, pipeline: str) -> Path:
    return location.parent.parent / ".watermarks" / sha256(pipeline.encode()).hexdigest()


class SharedTable(FeatherTable):
    def open(self) -> ManifestState:
        state = super().open()
        return SharedState(**{name: getattr(state, name) for name in state.__dataclass_fields__})


class SharedCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        done = super().publish(state, results, watermark)
        if watermark is not None:
            note = note_of(self.table.location, watermark.token.pipeline)
            note.parent.mkdir(exist_ok=True)
            note.write_text(watermark.to_json())
        return done


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-watermarks-of-a-warehouse", table=SharedTable, committer=SharedCommitter)
