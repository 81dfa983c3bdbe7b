"""Manifests: one immutable document per commit, chained by hash, each complete in itself for the next writer.

A manifest holds the files that its commit added and the watermarks of *all* pipelines. So a writer reads one
manifest, however long the history is. A snapshot is the sum of its manifests (see `rollup`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from laketier.kit.manifests.description import descriptor_from_plain, descriptor_to_plain
from laketier.kit.manifests.document import (
    ADOPTED_VERSION,
    decode,
    digest,
    digests_from_plain,
    encode,
    text,
    texts,
    whole,
)
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.layout import ManifestLayout
from laketier.kit.manifests.versions import version_of
from laketier.spi.table import TableDescriptor
from laketier.spi.token import Watermark

ADOPTED = "adopted"
"""The origin of a table that was made of files that lay there."""
REBUILT = "rebuilt"
"""The origin of a table whose manifests were lost, and made again from its files: which pipelines it knew is lost."""
_ORIGINS = ("", ADOPTED, REBUILT)


@dataclass(frozen=True)
class Commit:
    """Identifies a commit in the history. ``at`` is in ms since the epoch and never goes back."""

    number: int
    at: int
    commit_id: str
    kind: str

    @property
    def resets(self) -> bool:
        """Whether the files before it are no longer part of the table."""
        return self.kind == "overwrite"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One commit. ``previous`` is the SHA-256 of the manifest before it. ``kind``: ``create``, ``alter``,
    ``append``, ``upsert``, ``expire`` or ``overwrite``; an overwrite drops all files before it, an upsert those
    whose paths are ``removed``. ``metadata_at`` is the number of the manifest that holds the table's metadata as of
    this one. ``watermarks``: pipeline → its last watermark, of all pipelines. ``folded``: the paths among
    ``removed`` with rows that are in the table as before, in those files among ``added`` that have a level.
    ``folding``: what the next commit wants to know of small files, as JSON's own types. ``open``: the files that
    earlier commits left open, and this one did not change; `open_files` are all that are open. ``origin``: where
    the table's first files came from, empty where writers made them; each manifest of a table has the same.
    ``earliest``: the oldest snapshot that can still be read; it never goes back. ``digests``: of some earlier
    manifests, by number; see `laketier.kit.manifests.digests`.
    """

    table_uuid: str
    number: int
    previous: str
    at: int
    commit_id: str
    kind: str
    metadata_at: int
    added: tuple[FileEntry, ...] = ()
    removed: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    folding: Mapping[str, Any] | None = None
    open: tuple[FileEntry, ...] = ()
    watermarks: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    metadata: TableDescriptor | None = None
    origin: str = ""
    earliest: int = 0
    digests: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    sha256: str = ""

    def digest_of(self, number: int) -> str | None:
        """The digest of manifest ``number`` of its history. None where it does not name it."""
        near = {self.number: self.sha256, self.number - 1: self.previous}
        return near.get(number) or self.digests.get(number)

    @property
    def commit(self) -> Commit:
        """Its line in the history."""
        return Commit(self.number, self.at, self.commit_id, self.kind)

    @property
    def resets(self) -> bool:
        """See `Commit.resets`."""
        return self.commit.resets

    @property
    def arrived(self) -> tuple[FileEntry, ...]:
        """The added files with rows that were not in the table before. Of one that grew, only some may be new
        (`FileEntry.arrived_rows`), or none."""
        new = tuple(entry for entry in self.added if not entry.level) if self.folded else self.added
        return tuple(entry for entry in new if entry.arrived_rows)

    @property
    def open_files(self) -> tuple[FileEntry, ...]:
        """The files that are open as of it, of all pipelines."""
        return (*self.open, *(entry for entry in self.added if entry.is_open))

    @property
    def replaced(self) -> tuple[str, ...]:
        """The removed files with rows that are not in the table any more, or not as they were."""
        if not self.folded:
            return self.removed
        folded = set(self.folded)
        return tuple(path for path in self.removed if path not in folded)

    def watermark(self, pipeline: str) -> Watermark | None:
        """The last watermark of ``pipeline``."""
        found = self.watermarks.get(pipeline)
        return None if found is None else Watermark.from_json(found)

    def encode(self) -> bytes:
        """Encode the manifest. The head of the document holds its digest, which `decode` returns as `sha256`."""
        body = {
            **({"origin": self.origin} if self.origin else {}),
            **({"earliest": self.earliest} if self.earliest else {}),
            **({"digests": dict(self.digests)} if self.digests else {}),
            "table_uuid": self.table_uuid,
            "number": self.number,
            "previous": self.previous,
            "at": self.at,
            "commit_id": self.commit_id,
            "kind": self.kind,
            "metadata_at": self.metadata_at,
            "added": [entry.to_plain() for entry in self.added],
            **({"removed": list(self.removed)} if self.removed else {}),
            **({"folded": list(self.folded)} if self.folded else {}),
            **({"folding": self.folding} if self.folding is not None else {}),
            **({"open": [entry.to_plain() for entry in self.open]} if self.open else {}),
            "watermarks": dict(self.watermarks),
            "metadata": None if self.metadata is None else descriptor_to_plain(self.metadata),
        }
        return encode({"version": version_of(body), **body})

    @classmethod
    def decode(cls, data: bytes, path: Path | str, layout: ManifestLayout) -> Manifest:
        """Undo `encode`. Raises `CorruptTable` naming ``path``."""
        return decode(data, path, lambda body, sha256: cls._from_body(body, sha256, layout))

    @classmethod
    def _from_body(cls, body: dict[str, Any], sha256: str, layout: ManifestLayout) -> Manifest:
        metadata = body["metadata"]
        origin = origin_of(body)
        return cls(
            table_uuid=body["table_uuid"],
            number=whole(body["number"]),
            previous=digest(body["previous"]),
            at=whole(body["at"]),
            commit_id=text(body["commit_id"]),
            kind=text(body["kind"]),
            metadata_at=whole(body["metadata_at"]),
            added=tuple(FileEntry.from_plain(entry, layout, adopted=bool(origin)) for entry in body["added"]),
            removed=removed_paths(body, layout),
            folded=_folded_paths(body),
            folding=body.get("folding"),
            open=_open_entries(body, layout),
            watermarks=texts(body["watermarks"]),
            metadata=None if metadata is None else descriptor_from_plain(metadata),
            origin=origin,
            earliest=_earliest(body),
            digests=digests_from_plain(body.get("digests", {}), body["number"]),
            sha256=sha256,
        )


def origin_of(body: Mapping[str, Any]) -> str:
    """The origin of the table that a document is of. Raises `ValueError`."""
    origin = body.get("origin", "")
    version = body["version"]
    if origin not in _ORIGINS or (version < ADOPTED_VERSION if origin else version == ADOPTED_VERSION):
        raise ValueError(f"the origin is {origin!r} in version {body['version']}")
    return str(origin)


def removed_paths(body: Mapping[str, Any], layout: ManifestLayout) -> tuple[str, ...]:
    """The paths below ``removed``. Raises `OutsideTable`."""
    adopted = bool(origin_of(body))
    return tuple(layout.data_path(path, where="removed", adopted=adopted) for path in body.get("removed", ()))


def _folded_paths(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths below ``folded``. Raises `ValueError` for one that the manifest does not remove: its rows would be
    in the table twice."""
    folded = tuple(body.get("folded", ()))
    if not set(folded) <= set(body.get("removed", ())):
        raise ValueError("it folds files that it does not remove")
    return folded


def _earliest(body: dict[str, Any]) -> int:
    """Raises `ValueError` for one that is not there yet."""
    earliest = whole(body.get("earliest", 0))
    if earliest > body["number"]:
        raise ValueError(f"snapshot {earliest} is not there yet")
    return earliest


def _open_entries(body: dict[str, Any], layout: ManifestLayout) -> tuple[FileEntry, ...]:
    """The entries below ``open``. Raises `ValueError` for one that is not open, or named elsewhere too."""
    found = tuple(FileEntry.from_plain(entry, layout) for entry in body.get("open", ()))
    changed = {entry["path"] for entry in body["added"]} | set(body.get("removed", ()))
    if not all(entry.is_open for entry in found) or changed & {entry.path for entry in found}:
        raise ValueError("it calls files open that are not, or that it changes")
    return found
