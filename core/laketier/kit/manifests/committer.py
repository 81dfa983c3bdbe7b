"""The atomic step: manifest N+1, taken by exclusive create, then everything else rolled forward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow.fs as pafs

from laketier.kit.failpoints import failpoint
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.rollup import files_at
from laketier.kit.manifests.table import ManifestState, ManifestTable
from laketier.kit.staged import discard_staged, remove, replaced_files
from laketier.spi.clocks import host_time, time_of_storage
from laketier.spi.committer import LakeCommitResult, LakeCommitter, TableState
from laketier.spi.context import CommitterInitContext
from laketier.spi.token import Watermark
from laketier.spi.writer import WriteResult


@dataclass(frozen=True)
class ManifestCommitter(LakeCommitter[WriteResult]):
    """One attempt at the next manifest of a `ManifestTable`. Driver. Needs write access to the table's folder."""

    table: ManifestTable
    context: CommitterInitContext

    def open(self) -> ManifestState:
        return self.table.open()

    def publish(
        self, state: TableState, results: Sequence[WriteResult], watermark: Watermark | None
    ) -> LakeCommitResult:
        assert isinstance(state, ManifestState)
        self.table.check_staged(state, results)
        added = tuple(self.table.entry(state, file) for result in results for file in result.files)
        removed = self._removed(state, results)
        number = state.head.number + 1
        watermarks = dict(state.head.watermarks)
        if watermark is not None:
            watermarks[watermark.token.pipeline] = watermark.carried_by(number).to_json()
        manifest = next_manifest(
            state.head,
            commit_id=self.context.commit_id,
            kind=self.context.mode.value,
            added=added,
            removed=removed,
            watermarks=watermarks,
        )
        failpoint("publish.before_manifest")
        published = state.manifests.append(manifest)
        failpoint("publish.after_manifest_before_renames")
        self.table.finish(state.manifests, published)
        return LakeCommitResult(
            snapshot_id=number,
            rows=sum(entry.rows for entry in added),
            files=len(added),
            bytes=sum(entry.bytes for entry in added),
        )

    def storage_time(self) -> int:
        return time_of_storage(pafs.LocalFileSystem(), str(self.table.location))

    def discard(self, results: Sequence[WriteResult]) -> None:
        discard_staged(
            results,
            attempt_of=self.table.layout.attempt_of,
            where=str(self.table.location),
            published=self._published,
            delete=partial(remove, self.table.folder),
        )

    def _published(self, paths: Sequence[str]) -> set[str]:
        manifests = self.table.manifests()
        head, _ = manifests.head()
        return self.table.published(manifests, head).intersection(paths)

    def _removed(self, state: ManifestState, results: Sequence[WriteResult]) -> tuple[str, ...]:
        if not any(result.replaced for result in results):
            return ()
        live = {entry.path for entry in files_at(state.manifests, state.head.number)}
        return replaced_files(results, live, where=str(self.table.location))


def next_manifest(head: Manifest, *, commit_id: str, kind: str, **changes: object) -> Manifest:
    """The manifest after ``head``. Times never go back, whatever the clock does."""
    return replace(
        Manifest(
            table_uuid=head.table_uuid,
            number=head.number + 1,
            previous=head.sha256,
            at=max(host_time(), head.at + 1),
            commit_id=commit_id,
            kind=kind,
            metadata_at=head.metadata_at,
            watermarks=head.watermarks,
        ),
        **changes,  # type: ignore[arg-type]
    )
