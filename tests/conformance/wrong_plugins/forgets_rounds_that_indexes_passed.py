"""A round that landed a version later than it was meant to, as an index came before it, counts as one taken back."""

from __future__ import annotations

from typing import Any

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.committer import LanceCommitter
from laketier_lance.harness import LanceHarness
from laketier_lance.plugin import LancePlugin
from laketier_lance.rounds import LanceRound
from laketier_lance.state import LanceTableState
from laketier_lance.storage import LanceStorage, LanceTieringFactory
from laketier_lance.table import watermark_key

CAUGHT_BY = "test_index_answers.py::test_watermarks_stay_as_they_are"
SAYS = "an index was published between the look of a round and its commit, and epoch"


class State(LanceTableState):
    def _forgot(self, published: LanceRound) -> bool:
        stored = self.metadata.get(watermark_key(published.pipeline))
        return stored is None or published.version > (spi.Watermark.from_json(stored).snapshot_id or 0)


class Committer(LanceCommitter):
    def open(self) -> State:
        found = super().open()
        return State(found.dataset, found.location, found.metadata, found.attempted_at, found.manifest)


class Factory(LanceTieringFactory):
    def create_committer(self, context: spi.CommitterInitContext) -> Committer:
        return Committer(self.target.table.location, self.target.options, context)


class Storage(LanceStorage):
    def tiering_factory(self, table: spi.TableInfo) -> Factory:
        return Factory(super().tiering_factory(table).target)


class Plugin(LancePlugin):
    identifier = "forgets-rounds-that-indexes-passed"

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        made: Any = super().create_storage(config)
        return Storage(made._warehouse, made._options)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Plugin()
