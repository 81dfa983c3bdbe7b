"""What the index is goes into the metadata of the table, in place of what was there."""

from __future__ import annotations

from collections.abc import Sequence

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_watermarks_stay_as_they_are"
SAYS = "index was built"


class Indexer(LanceIndexer):
    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        super().publish(plan, built)
        dataset = self._open()
        kept = {key.decode(): value.decode() for key, value in (dataset.schema.metadata or {}).items()}
        dataset.replace_schema_metadata(
            {key: value for key, value in kept.items() if "watermark" not in key} | {"index": plan.spec.name}
        )
        return self.indexes()[0]


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("takes-the-watermark", indexer=Indexer)
