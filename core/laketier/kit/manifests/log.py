"""The log of a table: numbered manifests, of which the newest is the table.

Names are taken by exclusive create and never given back, so of two writers that saw the same head one wins. The
**head file** beside them names a manifest that is durable and whose files are all in place. It makes finding the head
independent of the length of the history, and tells when the newest manifests were taken away. It is a hint only:
written after everything it tells is durable, not synced itself, and rebuilt from a listing when it is gone.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from laketier.kit.local_store import folder_of, store_of
from laketier.kit.manifests.description import Description
from laketier.kit.manifests.document import FORMAT_VERSION, decode, digest_of, encode, whole
from laketier.kit.manifests.kept import DOCUMENTS
from laketier.kit.manifests.layout import ManifestLayout
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.table_file import HEAD_FILE, UUID, TableFile
from laketier.kit.table_store import TableStore
from laketier.spi.errors import (
    Conflict,
    CorruptTable,
    RolledBack,
    SnapshotNotFound,
    TableNotFound,
)
from laketier.spi.table import TableDescriptor

log = logging.getLogger(__name__)

_SUFFIX = ".json"
_NUMBER = re.compile(r"[0-9]{1,20}")

M = TypeVar("M", Manifest, Description)


@dataclass(frozen=True)
class ManifestLog:
    """The manifests of one table. Driver only, but for plain data. Keeps nothing of its own in memory (`kept` does of
    large documents). ``place``: the table's folder on a disk, or another `TableStore`."""

    place: Path | TableStore
    layout: ManifestLayout
    table_uuid: str
    manifests_per_rollup: int

    @classmethod
    def open(cls, place: Path | TableStore, layout: ManifestLayout) -> ManifestLog:
        """The log of the table at ``place``. Raises as `TableFile.read`."""
        table = TableFile.read(place, layout)
        return cls(place, layout, table.table_uuid, table.manifests_per_rollup)

    @property
    def store(self) -> TableStore:
        """Where the table is."""
        return store_of(self.place)

    @property
    def home(self) -> str:
        """The folder of the manifests, relative to the table."""
        return f"{self.layout.folder}/{self.table_uuid}"

    def name(self, number: int) -> str:
        """Manifest ``number``, relative to the table."""
        return f"{self.home}/{number:020}{_SUFFIX}"

    def number_of(self, path: str) -> int | None:
        """The number of the manifest at ``path``, relative to the table. None where a file is none."""
        name = path.removeprefix(f"{self.home}/").removesuffix(_SUFFIX)
        return int(name) if _NUMBER.fullmatch(name) and self.name(int(name)) == path else None

    @property
    def location(self) -> Path:
        """The table's folder. Raises `FeatureNotSupported` where it is on no disk, as `folder` and `path` do."""
        return folder_of(self.store)

    @property
    def folder(self) -> Path:
        """Where the manifests lie on a disk."""
        return self.location / self.home

    def path(self, number: int) -> Path:
        """Manifest ``number`` on a disk."""
        return self.location / self.name(number)

    def read(self, number: int) -> Manifest:
        """Read a manifest. Raises `CorruptTable` when it is missing, damaged, or another one's."""
        return self._checked(number, "manifest", self._decode)

    def _checked(self, number: int, kind: str, build: Callable[[bytes, str], M]) -> M:
        try:
            return self._read(number, kind, build)
        except FileNotFoundError as error:
            self._refuse_loss_by_drop()
            raise CorruptTable(
                "a manifest is missing",
                where=self.store.where(self.name(number)),
                why="something deleted files of the table",
                fix="Restore the file from a backup.",
            ) from error

    def _decode(self, data: bytes, where: str) -> Manifest:
        return Manifest.decode(data, where, self.layout)

    def _read(self, number: int, kind: str, build: Callable[[bytes, str], M]) -> M:
        store, name = self.store, self.name(number)
        where = store.where(name)
        manifest = DOCUMENTS.get(store, name, kind, lambda data: build(data, where))
        if manifest.number != number or manifest.table_uuid != self.table_uuid:
            raise CorruptTable(
                "the file is another manifest",
                where=where,
                why=f"it is number {manifest.number} of table {manifest.table_uuid}",
                fix="Restore the file from a backup.",
            )
        return manifest

    def head(self) -> tuple[Manifest, bool]:
        """The newest manifest, and whether its files are known to be in place.

        Raises `RolledBack` when manifests that were there are gone, and `CorruptTable`.
        """
        hint = self._hint()
        known = number = self._last_listed() if hint is None else hint[0]
        while self.exists(number + 1):
            number += 1
        if hint is None:
            return self.read(number), False
        try:
            head = self._read(number, "manifest", self._decode)
            if number != known and not self.exists(known):
                raise FileNotFoundError
        except FileNotFoundError as error:
            self._refuse_loss_by_drop()
            name = self.name(known)
            raise RolledBack(
                f"manifest {known} is gone, and the table was there already",
                where=self.store.where(name),
                why="something deleted the newest manifests, or restored an older copy of them",
                fix=f"Restore {name.rpartition('/')[2]} from a backup. To accept that the commits are lost, delete "
                f"{HEAD_FILE} beside it and remove their data files.",
            ) from error
        if known == number and hint[1] != head.sha256:
            raise self._replaced(number)
        return head, known == number

    def current(self) -> tuple[Manifest, bool]:
        """Read the head as `head` does, for readers: missing newest manifests are logged as a warning, and the
        remaining ones are read."""
        try:
            return self.head()
        except RolledBack as error:
            log.warning("reading an older state of the table: %s", error)
            return self.read(self._last_listed()), False

    def version(self) -> str | None:
        """Name the newest manifest, without reading it. None where its files are not known to be in place, or where
        something deleted manifests: whoever loads the table sees to either."""
        # Before the file is read: where it is another one by then, `is_version` finds that at the next look.
        head = self.store.identity(f"{self.home}/{HEAD_FILE}")
        hint = self._hint()
        if hint is None or self.exists(hint[0] + 1):
            return None
        manifest, table = map(self.store.identity, (self.name(hint[0]), self.layout.table_file))
        return f"{self.table_uuid}/{hint[0]}/{hint[1]}/{manifest}/{head}/{table}"

    @classmethod
    def is_version(cls, known: str, place: Path | TableStore, layout: ManifestLayout) -> bool:
        """Whether `version` would say ``known``, without reading a file: each that it stands for is as it was."""
        parts = known.split("/")
        if len(parts) != 6 or not UUID.fullmatch(parts[0]) or not _NUMBER.fullmatch(parts[1]):
            return False
        manifests = cls(place, layout, parts[0], 2)
        number, store = int(parts[1]), manifests.store
        looks: list[Callable[[], str | bool | None]] = [partial(manifests.exists, number + 1)]
        looks += [partial(store.identity, name) for name in manifests.names_of_version(number)]
        is_past, *found = store.all_of(looks)
        return found == parts[3:] and not is_past

    def names_of_version(self, number: int) -> tuple[str, str, str]:
        """The files that `version` stands for, relative to the table."""
        return self.name(number), f"{self.home}/{HEAD_FILE}", self.layout.table_file

    def sync_names(self) -> None:
        """Make the names of the table and of its newest manifest durable. Their writer may not have synced them yet,
        or was killed before, and the caller is about to acknowledge them."""
        self.store.sync(self.layout.folder)
        self.store.sync(self.home)

    def metadata(self, manifest: Manifest) -> TableDescriptor:
        """Read the table's description at ``manifest``. Raises as `read`, and `CorruptTable` where that of another
        history lies in its place."""
        if manifest.metadata is not None:
            return manifest.metadata
        number = manifest.metadata_at
        holder = self._checked(number, "description", Description.decode)
        if manifest.digest_of(number) not in (None, holder.sha256):
            raise replaced(self, number)
        if holder.metadata is None:
            raise CorruptTable(
                "the manifest holds no description of the table", where=self.store.where(self.name(number))
            )
        return holder.metadata

    def at(self, number: int, head: Manifest) -> Manifest:
        """The manifest of snapshot ``number``. Raises `SnapshotNotFound`, and as `read`."""
        if number == head.number:
            return head
        if not head.earliest <= number < head.number:
            raise SnapshotNotFound(
                f"snapshot {number} has expired" if 0 <= number < head.earliest else f"there is no snapshot {number}",
                where=self.store.root,
                fix=f"The table has snapshots {head.earliest} to {head.number}.",
            )
        return self.read(number)

    def as_of(self, moment: int, head: Manifest) -> Manifest:
        """The manifest that was current at ``moment`` (ms since the epoch). Reads O(log n) manifests, as their times
        never go back. Raises `SnapshotNotFound` for a moment before the table was created."""
        if head.at <= moment:
            return head
        low, high, found = head.earliest, head.number, None
        while low <= high:
            middle = (low + high) // 2
            manifest = self.at(middle, head)
            if manifest.at <= moment:
                found, low = manifest, middle + 1
            else:
                high = middle - 1
        if found is None:
            raise SnapshotNotFound(
                f"the table has no snapshot as old as {moment} (ms since the epoch)",
                where=self.store.root,
                why="older ones have expired" if head.earliest else None,
                fix=f"The table has snapshots {head.earliest} to {head.number}.",
            )
        return found

    def append(self, manifest: Manifest) -> Manifest:
        """Publish ``manifest`` under its name. Durable when it returns. Raises `Conflict` when it is certain that
        the manifest is not part of the table, and never will be."""
        store, name, document = self.store, self.name(manifest.number), manifest.encode()
        where = store.where(name)
        # What could not be read back is not published.
        published = Manifest.decode(document, where, self.layout)
        try:
            store.create(name, document)
        except FileExistsError as error:
            raise Conflict(f"another writer published snapshot {manifest.number}", where=where) from error
        except FileNotFoundError as error:
            if not store.exists(self.home):
                raise Conflict("the table was dropped meanwhile", where=store.root) from error
            raise
        self._refuse_reused_name(manifest.number, digest_of(document))
        return published

    def note_head(self, manifest: Manifest) -> None:
        """Remember a manifest whose files are in place. Never goes back. Raises `RolledBack` where another one has its
        name by now.

        The look comes last. Of two writers that a storage let take one name, the later one put its manifest either
        before this look, which then finds it, or after the head file was written, which then names another one than is
        there: the later writer finds that, or whoever opens the table next."""
        hint = self._hint()
        if hint is None or hint[0] < manifest.number:
            told = encode({"version": FORMAT_VERSION, "number": manifest.number, "sha256": manifest.sha256})
            self.store.replace(f"{self.home}/{HEAD_FILE}", told)
        if self.store.may_take_twice:
            self._refuse_taken_over(manifest)

    def _refuse_taken_over(self, manifest: Manifest) -> None:
        try:
            if digest_of(self.store.read(self.name(manifest.number))) == manifest.sha256:
                return
        except FileNotFoundError:
            if self._is_dropped():
                return  # after the commit
        raise self._replaced(manifest.number)

    def _replaced(self, number: int) -> RolledBack:
        why, fix = "something replaced it, for example a restore followed by new commits", ""
        if self.store.may_take_twice:
            self.store.distrust()
            why = "something replaced it: a restore and new commits, or a store that lets two writers take one name"
            fix = " Run `laketier doctor` on the table: it says what the store does."
        return RolledBack(
            f"manifest {number} is not the one that was published",
            where=self.store.where(self.name(number)),
            why=why,
            fix=f"Restore the table from one backup, manifests and data together.{fix}",
        )

    def _refuse_reused_name(self, number: int, sha256: str) -> None:
        """Look again after the name was taken: if the table is there or past it, and does not descend from it, the name
        was free only because someone deleted manifests, and what was published there is part of nothing."""
        hint = self._hint()
        if hint is None or self.store.needs_no_folder:
            self._refuse_dropped(number)
        if hint is None:
            return
        if hint[0] < number or hint == (number, sha256):
            return
        if self.exists(number + 1) and self.read(number + 1).previous == sha256:
            return
        self.store.delete(self.name(number))
        self.store.sync(self.home)
        self.store.distrust()
        raise Conflict(
            f"the table is at snapshot {hint[0]}, and the name of snapshot {number} was free",
            where=self.store.where(self.name(number)),
            why="something deleted manifests"
            + (", or the store lets two writers take one name" if self.store.may_take_twice else ""),
        )

    def _refuse_dropped(self, number: int) -> None:
        """Where there is no head file any more, there may be no table: on storage without folders, a name in a dropped
        or rebuilt table can be taken like any other. Both take ``table.json`` away first, so a commit that still finds
        it came before."""
        if not self._is_dropped():
            return
        self.store.delete(self.name(number))
        raise Conflict("the table was dropped meanwhile", where=self.store.root)

    def _refuse_loss_by_drop(self) -> None:
        """A drop takes a table's files one by one, beside whoever reads them: nothing is damaged then."""
        if self._is_dropped():
            raise TableNotFound("the table was dropped meanwhile", where=self.store.root)

    def _is_dropped(self) -> bool:
        try:
            return TableFile.read(self.place, self.layout).table_uuid != self.table_uuid
        except TableNotFound:
            return True

    def _hint(self) -> tuple[int, str] | None:
        name = f"{self.home}/{HEAD_FILE}"
        try:
            return decode(self.store.read(name), self.store.where(name), _number_and_digest)
        except (FileNotFoundError, CorruptTable):
            # Not synced, so a power failure may leave it empty. The listing knows the same.
            return None

    def _last_listed(self) -> int:
        found = (self.number_of(f"{self.home}/{name}") for name in self.store.names(self.home))
        numbers = [number for number in found if number is not None]
        if not numbers:
            self._refuse_loss_by_drop()
            raise CorruptTable(
                "the table has no manifest",
                where=self.store.where(self.home),
                why="something deleted files of the table",
                fix="Restore the folder from a backup.",
            )
        return max(numbers)

    def exists(self, number: int) -> bool:
        """Whether manifest ``number`` is there."""
        return self.store.exists(self.name(number))


def _number_and_digest(body: dict[str, Any], _: str) -> tuple[int, str]:
    return whole(body["number"]), str(body["sha256"])


def replaced(manifests: ManifestLog, number: int) -> CorruptTable:
    """The error for manifest ``number``, which is another one than the next one follows."""
    return CorruptTable(
        f"manifest {number} is not the one that manifest {number + 1} follows",
        where=manifests.store.where(manifests.name(number)),
        why="something replaced it after it was published",
        fix="Restore the manifests from one backup.",
    )
