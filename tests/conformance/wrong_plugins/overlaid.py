"""Lance with another indexer or searcher, for mistakes in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from laketier import spi
from laketier_lance.dataset import open_dataset
from laketier_lance.index_builder import LanceIndexBuilder
from laketier_lance.indexer import LanceIndexer
from laketier_lance.options import LanceOptions
from laketier_lance.plugin import LancePlugin
from laketier_lance.searcher import LanceSearcher, LanceSearchSnapshot

MOST = 10_000
Rows = list[tuple[int, float]]


class OverlaidSearcher(LanceSearcher):
    """Opens snapshots of another class."""

    snapshot: type[LanceSearchSnapshot] = LanceSearchSnapshot

    def at(self, snapshot_id: int | None = None) -> LanceSearchSnapshot:
        return self.snapshot(open_dataset(self.location, {}, snapshot_id), self.name)


class OverlaidIndexer(LanceIndexer):
    """Plans tasks of another class, but for merges."""

    builder: type[LanceIndexBuilder]

    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        plan: Any = super().plan(spec, max_parts, mode)
        if not isinstance(plan.builder, LanceIndexBuilder):
            return plan  # type: ignore[no-any-return]
        return replace(plan, builder=self.builder(**vars(plan.builder)))


class OverlaidPlugin(LancePlugin):
    """Its storage makes these."""

    def __init__(self, named: str, indexer: type[LanceIndexer], searcher: type[LanceSearcher]) -> None:
        self.identifier = named  # type: ignore[misc]
        self._indexer, self._searcher = indexer, searcher

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        storage.indexer = lambda table: self._indexer(table.location, LanceOptions())
        storage.searcher = lambda table: self._searcher(table.location, str(table.path), LanceOptions())
        return storage  # type: ignore[no-any-return]


def overlaid(
    named: str,
    *,
    indexer: type[LanceIndexer] = LanceIndexer,
    searcher: type[LanceSearcher] = OverlaidSearcher,
) -> spi.LakeStoragePlugin:
    """The plugin."""
    return OverlaidPlugin(named, indexer, searcher)


def building(named: str, with_builder: type[LanceIndexBuilder]) -> spi.LakeStoragePlugin:
    """The plugin, whose tasks are these."""

    class Indexer(OverlaidIndexer):
        builder = with_builder

    return overlaid(named, indexer=Indexer)


def asking(named: str, query: Callable[[spi.SearchRequest], spi.SearchQuery]) -> spi.LakeStoragePlugin:
    """The plugin, whose searcher asks ``query`` instead of what it was asked."""

    class Snapshot(LanceSearchSnapshot):
        def search(self, request: spi.SearchRequest) -> spi.SearchResult:
            return super().search(replace(request, query=query(request)))

    class Searcher(OverlaidSearcher):
        snapshot = Snapshot

    return overlaid(named, searcher=Searcher)
