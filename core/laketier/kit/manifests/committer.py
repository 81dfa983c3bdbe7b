"""The atomic step: manifest N+1, taken by exclusive create, then everything else rolled forward."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from laketier.kit.before_effect import before_effect
from laketier.kit.failpoints import failpoint
from laketier.kit.file_counts import FILE_COUNTS
from laketier.kit.manifests.chain import back_from
from laketier.kit.manifests.digests import digests_after
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.folding import Room, due, room_after, room_of
from laketier.kit.manifests.growth import growth_of
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.open_files import Finished, finish, left_open, still_open
from laketier.kit.manifests.rollup import files_at
from laketier.kit.manifests.table import ManifestState, ManifestTable
from laketier.kit.staged import discard_staged, refuse_published, remove, replaced_files
from laketier.spi.clocks import host_time
from laketier.spi.committer import LakeCommitResult, LakeCommitter, TableState
from laketier.spi.context import CommitterInitContext, WriteMode
from laketier.spi.errors import CommitError, Conflict, CorruptTable
from laketier.spi.token import Watermark
from laketier.spi.writer import StagedFile, WriteResult

log = logging.getLogger(__name__)


@dataclass
class _Folded:
    """What a commit does to small files beside its own work: ``staged`` files take the place of ``paths``."""

    staged: list[StagedFile] = field(default_factory=list)
    entries: list[FileEntry] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    room: Room | None = None


@dataclass(frozen=True)
class ManifestCommitter(LakeCommitter[WriteResult]):
    """One attempt at the next manifest of a `ManifestTable`. Driver. Needs write access to the table's folder.
    ``finishes``: pipelines whose open files a commit without a pipeline finishes."""

    table: ManifestTable
    context: CommitterInitContext
    finishes: frozenset[str] = field(default=frozenset(), kw_only=True)

    def open(self) -> ManifestState:
        return self.table.open()

    def publish(
        self, state: TableState, results: Sequence[WriteResult], watermark: Watermark | None
    ) -> LakeCommitResult:
        assert isinstance(state, ManifestState)
        with before_effect(self.table.store.root):
            added, removed, watermarks, finished = self._checked(state, results, watermark)
        return self._append(state, added, removed, watermarks, finished)

    def _checked(
        self, state: ManifestState, results: Sequence[WriteResult], watermark: Watermark | None
    ) -> tuple[tuple[FileEntry, ...], tuple[str, ...], dict[str, str], Finished]:
        self.table.check_staged(state, results)
        self._refuse_named(state, results)
        pipeline = "" if watermark is None else watermark.token.pipeline
        named = [self._entry(state, file, pipeline) for result in results for file in result.files]
        # Of an open file that got no rows, only that it goes on is said.
        added = tuple(entry for entry in named if entry.arrived_rows or not entry.is_open)
        removed = self._removed(state, results)
        number = state.head.number + 1
        watermarks = dict(state.head.watermarks)
        if watermark is not None:
            watermarks[watermark.token.pipeline] = watermark.carried_by(number).to_json()
        finished = self._finish(state, pipeline, {*removed, *(entry.path for entry in named)})
        return added, removed, watermarks, finished

    def finish_left_open(self, state: ManifestState) -> None:
        """Finish the open files of `finishes`, in a commit without rows. Where there is none, or no room for any,
        nothing is published. Raises as `publish`."""
        finished = self._finish(state, "", ())
        if finished.paths:
            self._append(state, (), (), state.head.watermarks, finished)

    def _append(
        self,
        state: ManifestState,
        added: Sequence[FileEntry],
        removed: Sequence[str],
        watermarks: Mapping[str, str],
        finished: Finished,
    ) -> LakeCommitResult:
        with before_effect(self.table.store.root):
            number = state.head.number + 1
            folded = self._fold(state, (*added, *finished.entries), (*removed, *finished.paths))
            rewritten = (*finished.paths, *folded.paths)
            entries = self._named(number, (*added, *finished.entries, *folded.entries))
            manifest = next_manifest(
                state.head,
                commit_id=self.context.commit_id,
                kind=self.context.mode.value,
                added=entries,
                removed=(*removed, *rewritten),
                folded=rewritten,
                folding=None if folded.room is None else folded.room.to_plain(),
                open=() if self._resets else still_open(state.head, (*removed, *rewritten), entries),
                watermarks=watermarks,
            )
            failpoint("publish.before_manifest")
        try:
            published = state.manifests.append(manifest)
        except Conflict:
            remove(self.table.store, [file.path for file in (*finished.staged, *folded.staged)])
            raise
        FILE_COUNTS.folded(len(folded.paths))
        failpoint("publish.after_manifest_before_renames")
        self.table.finish(state.manifests, published)
        return LakeCommitResult(
            snapshot_id=number,
            rows=sum(entry.arrived_rows for entry in added),
            files=len(added),
            bytes=sum(entry.arrived_bytes for entry in added),
            folded=len(folded.paths),
        )

    def _refuse_named(self, state: ManifestState, results: Sequence[WriteResult]) -> None:
        """A file that a commit named is never named again, also where it left the table since. One that was moved by
        its commit is not where it was staged any more. Where files stay, the manifests tell that came since the table
        was loaded for the writers: while nobody else commits there are none."""
        after = min((0 if result.after is None else result.after for result in results if result.files), default=None)
        if self.table.layout.staged_as is not None or after is None or state.head.number <= after:
            return
        later = back_from(state.manifests, state.head, down_to=after + 1)
        named = {entry.path for manifest in later for entry in manifest.added if not entry.is_open}
        paths = (file.path for result in results for file in result.files)
        refuse_published(paths, named, where=self.table.store.root)

    @property
    def _resets(self) -> bool:
        return self.context.mode is WriteMode.OVERWRITE

    def _entry(self, state: ManifestState, file: StagedFile, pipeline: str) -> FileEntry:
        entry = self.table.entry(state, file)
        if entry.growth is not None and self.context.mode is not WriteMode.APPEND:
            raise CommitError(
                f"a round that is no append has the file {file.path!r}, which is open across rounds",
                where=self.table.store.root,
                fix="No writer of laketier makes such a result: find out who did, and run the round again.",
            )
        if entry.growth is None or entry.growth.continues:
            return entry
        return replace(entry, growth=replace(entry.growth, pipeline=pipeline))

    def _named(self, number: int, entries: Sequence[FileEntry]) -> tuple[FileEntry, ...]:
        """A file that earlier commits named keeps its name."""
        new = iter(self.table.named(number, [entry for entry in entries if not entry.continues]))
        return tuple(entry if entry.continues else next(new) for entry in entries)

    def _finish(self, state: ManifestState, pipeline: str, named: Collection[str]) -> Finished:
        """Finish what the pipeline's former processes left open. An overwrite takes such files away as they are."""
        if self._resets:
            return Finished()
        return finish(self.table, state, left_open(state.head, {pipeline, *self.finishes}, named))

    def _fold(self, state: ManifestState, added: Sequence[FileEntry], removed: Sequence[str]) -> _Folded:
        """Write small files as one where that is due. Nothing here may hold up the commit: where it fails, the files
        stay as they are, and it is tried again once as many small files have come."""
        settings = self.table.folding
        if settings is None:
            return _Folded()
        if self._resets:
            return _Folded(room=room_of(settings, added))
        room = room_after(settings, Room.from_plain(state.head.folding), added)
        if room is not None:
            return _Folded(room=room)
        folded = _Folded()
        live: list[FileEntry] = []
        try:
            gone = set(removed)
            live = [
                entry for entry in files_at(state.manifests, state.head.number, state.head) if entry.path not in gone
            ]
            for files in due(settings, live, added):
                failpoint("fold.before_rewrite")
                self._rewrite(state, files, folded)
                failpoint("fold.after_rewrite")
        except Exception:  # libraries have errors of their own, and none of them may cost the epoch
            log.warning(
                "small files of %s were not written as one; trying again in %d files",
                self.table.store.root,
                settings.files,
                exc_info=True,
            )
            remove(self.table.store, [file.path for file in folded.staged])
            return _Folded(room=Room(settings, settings.files))
        gone = set(folded.paths)
        stay = [entry for entry in live if entry.path not in gone]
        folded.room = room_of(settings, (*stay, *added, *folded.entries))
        return folded

    def _rewrite(self, state: ManifestState, files: Sequence[FileEntry], folded: _Folded) -> None:
        staged = self.table.rewrite(state, files)
        folded.staged += staged
        if sum(file.rows for file in staged) != sum(entry.rows for entry in files):
            raise CorruptTable(
                f"{len(files)} files hold {sum(file.rows for file in staged)} rows, and the table knows "
                f"{sum(entry.rows for entry in files)}",
                where=self.table.store.root,
            )
        folded.entries += [replace(self.table.entry(state, file), level=files[0].level + 1) for file in staged]
        folded.paths += [entry.path for entry in files]
        log.info("%s: wrote %d small files as %d", self.table.store.root, len(files), len(staged))

    def storage_time(self) -> int:
        return self.table.store.now()

    def discard(self, results: Sequence[WriteResult]) -> None:
        """A file that an earlier commit recorded is not staged by anybody, and stays."""
        discard_staged(
            [replace(each, files=tuple(file for file in each.files if not _continues(file))) for each in results],
            attempt_of=self.table.layout.attempt_of,
            where=self.table.store.root,
            published=self._published,
            delete=partial(remove, self.table.store),
        )

    def _published(self, paths: Sequence[str]) -> set[str]:
        manifests = self.table.manifests()
        head, _ = manifests.head()
        return self.table.published(manifests, head).intersection(paths)

    def _removed(self, state: ManifestState, results: Sequence[WriteResult]) -> tuple[str, ...]:
        if not any(result.replaced for result in results):
            return ()
        live = {entry.path for entry in files_at(state.manifests, state.head.number, state.head)}
        return replaced_files(results, live, where=self.table.store.root)


def _continues(file: StagedFile) -> bool:
    try:
        growth = growth_of(file)
    except (KeyError, TypeError, ValueError):
        return False
    return growth is not None and growth.continues


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
            folding=head.folding,
            open=head.open_files,
            watermarks=head.watermarks,
            origin=head.origin,
            earliest=head.earliest,
            digests=digests_after(head),
        ),
        **changes,  # type: ignore[arg-type]
    )
