"""The name of a pipeline is the key of an index, and the database's index takes 2,704 bytes, as it compresses them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_names_that_are_alike_stay_apart[beyond-an-index]"
SAYS = "a pipeline whose name has 4096 letters publishes an empty epoch: expected no error, found StorageError"
MOST = 2_000


class IndexingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if watermark is not None and len(zlib.compress(watermark.token.pipeline.encode())) > MOST:
            raise spi.StorageError("an index row exceeds the maximum", where=str(self.table.location))
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("indexes-pipeline-names", committer=IndexingCommitter)
