"""How formats of files look whether a result was published before: by the names of files that they know of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from compacting import merged
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.kit.manifests.committer import next_manifest
from laketier.kit.staged import refuse_live


class UnaskingCommitter(kit.ManifestCommitter):
    """Publishes whatever it gets, as the kit did before it asked which files commits had named."""

    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        return super().publish(state, [replace(each, after=state.head.number) for each in results], watermark)


class KnowingCommitter(UnaskingCommitter):
    """In place of what the kit does itself."""

    @abstractmethod
    def known(self, state: kit.ManifestState) -> set[str]:
        """The files that are not published again."""

    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        refuse_live((f.path for result in results for f in result.files), self.known(state), where=state.table_uuid)
        return super().publish(state, results, watermark)


def live(state: kit.ManifestState) -> set[str]:
    """The files of the newest snapshot."""
    return {entry.path for entry in files_at(state.manifests, state.head.number, state.head)}


class Compacting(kit.ManifestCommitter):
    """Takes all files away, and adds others."""

    def replace(self, result: spi.WriteResult) -> None:
        state = self.open()
        manifest = next_manifest(
            state.head,
            commit_id=self.context.commit_id,
            kind="append",
            added=tuple(self._named(state.head.number + 1, [self._entry(state, file, "") for file in result.files])),
            removed=tuple(sorted(live(state))),
        )
        self.table.finish(state.manifests, state.manifests.append(manifest))


def compact(storage: spi.LakeStorage, table: spi.TableInfo, without: Sequence[int] = ()) -> None:
    """All rows but those with the ids ``without``, in one file."""
    own = FeatherTable(storage.source(table).table.location)  # type: ignore[attr-defined]
    Compacting(own, spi.CommitterInitContext(spi.new_attempt_id())).replace(merged(storage, table, without))
