"""Watermarks kept under a name that is made of the pipeline's, as a column, a file or a property demands it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from feather_lake.plugin import FeatherTable

from laketier import kit, spi


def keyed(key: Callable[[str], str], *, listed: bool = True) -> dict[str, Any]:
    """The parts of a plugin that does so: a table and its committer. It lists the pipelines by these names, or can't
    list them."""

    @dataclass(frozen=True)
    class KeyedState(kit.ManifestState):
        def watermark(self, pipeline: str) -> spi.Watermark | None:
            mark = self.head.watermark(key(pipeline))
            return mark and replace(mark, token=replace(mark.token, pipeline=pipeline))

        def pipelines(self) -> Sequence[str] | None:
            return super().pipelines() if listed else None

    def kept(state: kit.ManifestState) -> kit.ManifestState:
        return KeyedState(state.manifests, state.head, state.metadata)

    class KeyedTable(FeatherTable):
        def open(self) -> kit.ManifestState:
            return kept(super().open())

        def state(self, info: spi.TableInfo) -> kit.ManifestState:
            return kept(super().state(info))

    class KeyedCommitter(kit.ManifestCommitter):
        def publish(
            self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
        ) -> spi.LakeCommitResult:
            if watermark is not None:
                watermark = replace(watermark, token=replace(watermark.token, pipeline=key(watermark.token.pipeline)))
            return super().publish(state, results, watermark)

    return {"table": KeyedTable, "committer": KeyedCommitter}
