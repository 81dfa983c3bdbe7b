"""Expiry: the oldest snapshots of a table end, and the files go that nothing but they needed.

A file is needed by the snapshots from the one that added it to the one before it was taken away. Expiry counts in
snapshots alone, so no date decides whether a file is needed:

1. It lists the superseded files, and then reads the newest manifest. A file in that list was taken away by a commit
   that is there by now, so whatever is committed meanwhile, the file is not among what it adds.
2. It chooses the earliest snapshot to stay. One that stopped to be the newest before the retention began may go, if all
   before it may; the dates of manifests are those of the storage, so that no clock of a host counts. Some of the newest
   stay, whatever their age.
3. It marks that snapshot in a commit of its own. Nobody opens an older one from then on.
4. It deletes what it listed, what is as old, and what none of the snapshots from there on names. They are read one by
   one, as rollups leave out what was both added and taken away.

Killed at any point, it leaves files that the next expiry lists again. A plan that was made of an expired snapshot
before the mark loses its files: hence the retention has to be longer than any read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from laketier.kit.failpoints import failpoint
from laketier.kit.local_folder import FoundFile
from laketier.kit.manifests.chain import back_from
from laketier.kit.manifests.committer import next_manifest
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.rollup import files_at
from laketier.kit.manifests.table import ManifestTable
from laketier.kit.pinned_folder import pinned_folder
from laketier.kit.staged import remove_files
from laketier.spi.clocks import host_time
from laketier.spi.errors import Conflict, FeatureNotSupported
from laketier.spi.maintenance import Expiry, OrphanFile
from laketier.spi.writer import new_attempt_id

log = logging.getLogger(__name__)

_TRIES = 20
_AT_ONCE = 256
"""Files that are deleted between two looks whether the table is still this one."""


@dataclass(frozen=True)
class _Found:
    manifests: ManifestLog
    head: Manifest
    earliest: int
    files: tuple[OrphanFile, ...]


def list_expired(table: ManifestTable, retention: int, keep: int) -> Expiry:
    """What `expire` would do, if this host's clock is right: asking the storage for the time takes a file, and this
    changes nothing. Driver. ``retention``: ms. Raises as `ManifestLog.head`, and `FeatureNotSupported` for a format
    that keeps all files."""
    _refuse_others(table)
    superseded = _superseded(table)
    manifests = table.manifests()
    found = _look(table, manifests, manifests.head()[0], superseded, host_time() - retention, keep)
    return Expiry(found.earliest, found.head.number, found.files)


def expire(table: ManifestTable, retention: int, keep: int) -> Expiry:
    """End the snapshots that stopped to be the newest more than ``retention`` ms ago, all but the ``keep`` newest, and
    delete the files that only these needed. Driver. Raises as `ManifestTable.open`, `Conflict` where other commits came
    first each time, or the table became another one, and `FeatureNotSupported` for a format that keeps all files."""
    _refuse_others(table)
    with pinned_folder(table.store.folder) as in_place:
        before = table.store.now() - retention
        try:
            found = _marked(table, before, keep)
        except FileNotFoundError as error:
            if in_place():
                raise
            raise Conflict("the table was dropped meanwhile", where=table.store.root) from error

        def is_it() -> bool:
            return in_place() and table.manifests().table_uuid == found.manifests.table_uuid

        removed: list[OrphanFile] = []
        for start in range(0, len(found.files), _AT_ONCE):
            if not is_it():
                raise Conflict("the table was dropped meanwhile", where=table.store.root)
            failpoint("expire.before_delete")
            removed += remove_files(table.store, found.files[start : start + _AT_ONCE])
    log.info("%s: %d superseded files deleted, %d bytes", table.store.root, len(removed), _bytes(removed))
    return Expiry(found.earliest, found.head.number, found.files, tuple(removed))


def has_expired(manifests: ManifestLog, path: str) -> bool:
    """Whether the data file ``path`` is of no snapshot that can still be read. For who misses it, on
    executors too; reads each manifest from the earliest one on. Raises as `ManifestLog.current`."""
    head, _ = manifests.current()
    return head.earliest > 0 and path not in _paths_since(manifests, head.earliest, head)


def _marked(table: ManifestTable, before: int, keep: int) -> _Found:
    """What may be deleted, once no snapshot that needs it can be opened any more."""
    for _ in range(_TRIES):
        with suppress(Conflict):
            return _marked_once(table, before, keep)
    return _marked_once(table, before, keep)


def _marked_once(table: ManifestTable, before: int, keep: int) -> _Found:
    superseded = _superseded(table)
    failpoint("expire.listed")
    state = table.open()
    found = _look(table, state.manifests, state.head, superseded, before, keep)
    if found.files and found.earliest > state.head.earliest:
        mark = next_manifest(state.head, commit_id=new_attempt_id(), kind="expire", earliest=found.earliest)
        failpoint("expire.before_mark")
        published = state.manifests.append(mark)
        failpoint("expire.after_mark")
        table.finish(state.manifests, published)
    return found


def _look(
    table: ManifestTable,
    manifests: ManifestLog,
    head: Manifest,
    superseded: Iterable[FoundFile],
    before: int,
    keep: int,
) -> _Found:
    layout, old = table.layout, [file for file in superseded if file.named_at < before]
    earliest = _first_to_stay(manifests, head, before, keep) if old else head.earliest
    assert layout.superseded_as is not None
    needed = {layout.superseded_as(path) for path in _paths_since(manifests, earliest, head)} if old else set()
    files = (OrphanFile(file.path, file.bytes, file.named_at) for file in old if file.path not in needed)
    return _Found(manifests, head, earliest, tuple(sorted(files)))


def _first_to_stay(manifests: ManifestLog, head: Manifest, before: int, keep: int) -> int:
    """A snapshot is the newest until the manifest after it is there. It stops at the first that is too young, or has no
    date: the storage's clock may have gone back."""
    dates: dict[int, int] = {}
    for file in manifests.store.files(manifests.home):
        number = manifests.number_of(file.path)
        if number is not None:
            dates[number] = file.named_at
    earliest = head.earliest
    while earliest + keep <= head.number and dates.get(earliest + 1, before) < before:
        earliest += 1
    return earliest


def _paths_since(manifests: ManifestLog, earliest: int, head: Manifest) -> set[str]:
    paths: set[str] = set()
    for manifest in back_from(manifests, head, down_to=earliest):
        first = manifest.number == earliest
        paths.update(entry.path for entry in (files_at(manifests, earliest, manifest) if first else manifest.added))
    return paths


def _superseded(table: ManifestTable) -> list[FoundFile]:
    layout = table.layout
    assert layout.was_superseded is not None
    return [file for file in table.store.files(layout.superseded) if layout.was_superseded(file.path)]


def _refuse_others(table: ManifestTable) -> None:
    layout = table.layout
    if layout.superseded_as is None or layout.was_superseded is None:
        raise FeatureNotSupported("expiry", format=layout.format, reason="it keeps the files of all snapshots")


def _bytes(files: Iterable[OrphanFile]) -> int:
    return sum(file.bytes for file in files)
