"""An overwrite replaces the partitions that it writes to, as Spark's dynamic mode does, and leaves the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin
from richer import richer

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_overwrite_partitions.py::test_partitions_without_new_rows_are_emptied_too[one]"
SAYS = "the table is overwritten with {9: 'b'}, and holds nothing else"


class DynamicCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if self.context.mode is not spi.WriteMode.OVERWRITE:
            return super().publish(state, results, watermark)
        assert isinstance(state, kit.ManifestState)
        written = {tuple(file.partition) for result in results for file in result.files}
        live = files_at(state.manifests, state.head.number)
        gone = tuple(entry.path for entry in live if entry.partition in written)
        context = replace(self.context, mode=spi.WriteMode.UPSERT)
        swap = replace(self, context=context)
        return swap.publish(
            state, [replace(each, replaced=gone) for each in results[:1]] + list(results[1:]), watermark
        )


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("overwrites-some-partitions", committer=DynamicCommitter)
