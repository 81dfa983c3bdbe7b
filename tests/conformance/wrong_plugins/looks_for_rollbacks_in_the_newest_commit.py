"""A rollback is a commit of its own kind, and is looked for in the newest commit. Behind a round of others it is
forgotten, and a pipeline goes on after rows that are gone."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, FeatherTable

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.kit.manifests.committer import next_manifest
from laketier.registry import hookimpl

CAUGHT_BY = "test_capabilities.py::test_a_foreign_rollback_is_noticed_after_rounds_of_others"
SAYS = "epoch 1 of p is published after somebody took the table back, and others came then: expected RolledBack"

ROLLBACK = "rollback"


class NewestState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        if self.head.kind == ROLLBACK and pipeline in self.head.watermarks:
            raise spi.RolledBack("the newest commit took rows back", where=self.manifests.store.root)
        return super().watermark(pipeline)


class NewestTable(FeatherTable):
    def open(self) -> kit.ManifestState:
        return NewestState(**vars(super().open()))

    def state(self, info: spi.TableInfo) -> kit.ManifestState:
        return NewestState(**vars(super().state(info)))


class RollingBack(kit.ManifestCommitter):
    """Takes all files away that came after a snapshot, with the watermarks."""

    def roll_back(self, number: int) -> None:
        state = self.open()
        then = state.manifests.read(number)
        gone = _paths(state, state.head) - _paths(state, then)
        manifest = next_manifest(
            state.head,
            commit_id=self.context.commit_id,
            kind=ROLLBACK,
            removed=tuple(sorted(gone)),
            watermarks=then.watermarks,
        )
        self.table.finish(state.manifests, state.manifests.append(manifest))


def _paths(state: kit.ManifestState, manifest: kit.Manifest) -> set[str]:
    return {entry.path for entry in files_at(state.manifests, manifest.number, manifest)}


class Harness:
    def roll_back(self, storage: spi.LakeStorage, table: spi.TableInfo, snapshot_id: int) -> None:
        own = FeatherTable(storage.source(table).table.location)  # type: ignore[attr-defined]
        RollingBack(own, spi.CommitterInitContext(spi.new_attempt_id())).roll_back(snapshot_id)


@hookimpl
def laketier_format() -> CrookedPlugin:
    features = {**FEATURES, spi.Feature.ROLLBACK_DETECTION: spi.FULL}
    return CrookedPlugin("looks-for-rollbacks-in-the-newest-commit", features, table=NewestTable)
