"""Reads the files of a snapshot in few steps, however long the history is.

The files of snapshot n are the sum of the manifests 0 to n, back to the last overwrite, less what upserts removed.
**Rollups** make the sum cheap: a rollup of level k is the sum of ``base ** k`` consecutive manifests, written once,
after the last of them. Snapshot n is then read from at most ``base - 1`` documents per level, and every file entry is
written again only once per level: writing and reading grow with the logarithm of the history.

Rollups are derived, deterministic and never changed, so losing one loses nothing: what it summed up is read instead.
Nor does one that lies in another's place, as a restore by hand may leave it: it is passed over unless it ends with the
manifest that the next one follows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from laketier.kit.manifests.document import decode, digest, encode, text, whole
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.kept import DOCUMENTS
from laketier.kit.manifests.layout import ManifestLayout
from laketier.kit.manifests.log import ManifestLog, replaced
from laketier.kit.manifests.manifest import Commit, Manifest, origin_of, removed_paths
from laketier.kit.manifests.table_file import ROLLUPS
from laketier.kit.manifests.versions import version_of
from laketier.spi.errors import CorruptTable, StorageError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Block:
    """The sum of the manifests ``first`` to ``last``. ``previous`` is the digest of the manifest before the first,
    ``sha256`` that of the last. ``files`` begin with the last overwrite, if one of them is one. ``removed``: paths of
    older files that they remove; what they both add and remove is in neither."""

    first: int
    last: int
    previous: str
    sha256: str
    files: tuple[FileEntry, ...]
    commits: tuple[Commit, ...]
    removed: tuple[str, ...] = ()
    origin: str = ""

    @property
    def resets(self) -> bool:
        """Whether one of them is an overwrite."""
        return any(commit.resets for commit in self.commits)

    @classmethod
    def of(cls, manifest: Manifest) -> Block:
        """One manifest."""
        return cls(
            manifest.number,
            manifest.number,
            manifest.previous,
            manifest.sha256,
            manifest.added,
            (manifest.commit,),
            manifest.removed,
            manifest.origin,
        )

    @classmethod
    def join(cls, blocks: Sequence[Block]) -> Block:
        """Consecutive blocks, oldest first."""
        start = max((i for i, block in enumerate(blocks) if block.resets), default=0)
        files: dict[str, FileEntry] = {}
        removed: list[str] = []
        for block in blocks[start:]:
            removed += [path for path in block.removed if _is_older(files.pop(path, None))]
            files |= {entry.path: entry for entry in block.files}
        return cls(
            blocks[0].first,
            blocks[-1].last,
            blocks[0].previous,
            blocks[-1].sha256,
            tuple(files.values()),
            tuple(commit for block in blocks for commit in block.commits),
            tuple(removed),
            blocks[-1].origin,
        )

    def encode(self) -> bytes:
        """The document."""
        body = {
            **({"origin": self.origin} if self.origin else {}),
            "first": self.first,
            "last": self.last,
            "previous": self.previous,
            "sha256": self.sha256,
            "resets": self.resets,  # a laketier from before reads it
            "files": [entry.to_plain() for entry in self.files],
            "commits": [[c.number, c.at, c.commit_id, c.kind] for c in self.commits],
            **({"removed": list(self.removed)} if self.removed else {}),
        }
        return encode({"version": version_of(body), **body})

    @classmethod
    def from_body(cls, body: dict[str, Any], layout: ManifestLayout) -> Block:
        """Undo `encode`."""
        origin = origin_of(body)
        return cls(
            whole(body["first"]),
            whole(body["last"]),
            digest(body["previous"]),
            text(body["sha256"]),
            tuple(FileEntry.from_plain(entry, layout, adopted=bool(origin)) for entry in body["files"]),
            tuple(
                Commit(whole(number), whole(at), text(name), text(kind)) for number, at, name, kind in body["commits"]
            ),
            removed_paths(body, layout),
            origin,
        )


def _is_older(removed: FileEntry | None) -> bool:
    """Whether a file that is removed may be in the blocks before, too: one that is not among these, or that grew."""
    return removed is None or removed.continues


def files_at(manifests: ManifestLog, number: int, known: Manifest | None = None) -> list[FileEntry]:
    """The live data files of snapshot ``number``, in the order in which they were added. ``known``: its manifest, where
    it was read already."""
    blocks = []
    for block in blocks_back_from(manifests, number, known=known):
        blocks.append(block)
        if block.resets:
            break
    return list(Block.join(blocks[::-1]).files)


def find_commit(manifests: ManifestLog, number: int, commit_id: str, known: Manifest | None = None) -> Commit | None:
    """The commit with this id in the whole history up to ``number``. No two have the same. ``known``: its manifest,
    where it was read already."""
    for block in blocks_back_from(manifests, number, known=known):
        for commit in block.commits:
            if commit.commit_id == commit_id:
                return commit
    return None


def blocks_back_from(
    manifests: ManifestLog, number: int, *, down_to: int = 0, known: Manifest | None = None
) -> Iterator[Block]:
    """Read blocks that cover the manifests ``down_to`` to ``number``, newest first, in as few documents as exist, and
    that of ``number`` itself, which vouches for the first block. ``known``: this manifest, where it was read already.
    Raises `CorruptTable` where the chain of digests breaks."""
    newest = known if known is not None and known.number == number else manifests.read(number)
    end, expected = number + 1, newest.sha256
    while end > down_to:
        block = _largest_block(manifests, end, down_to, newest, expected)
        if block.sha256 != expected:
            raise replaced(manifests, block.last)
        yield block
        end, expected = block.first, block.previous


def write_rollups(manifests: ManifestLog, number: int) -> None:
    """Write the rollups that end with manifest ``number``, if any do. Idempotent. A failure costs readers some
    speed and nothing else, so it is logged and does not fail the commit."""
    size = manifests.manifests_per_rollup
    try:
        while (number + 1) % size == 0:
            name = _rollup_name(manifests, number + 1 - size, number)
            if not manifests.store.exists(name):
                manifests.store.make_folders(f"{manifests.home}/{ROLLUPS}")
                blocks = list(blocks_back_from(manifests, number, down_to=number + 1 - size))
                # No error where another process finished the same commit: it wrote the same.
                manifests.store.create(name, Block.join(blocks[::-1]).encode())
            size *= manifests.manifests_per_rollup
    except (OSError, StorageError):
        log.warning("the rollup at snapshot %d of %s was not written", number, manifests.store.root, exc_info=True)


def _largest_block(manifests: ManifestLog, end: int, down_to: int, newest: Manifest, expected: str) -> Block:
    size = 1
    while end % (size * manifests.manifests_per_rollup) == 0 and end - size * manifests.manifests_per_rollup >= down_to:
        size *= manifests.manifests_per_rollup
    while size > 1:
        name = _rollup_name(manifests, end - size, end - 1)
        try:
            block = DOCUMENTS.get(manifests.store, name, "rollup", partial(_decoded, manifests, name))
        except FileNotFoundError:
            pass
        except CorruptTable as error:
            log.warning("reading the manifests instead of a damaged rollup: %s", error)
        else:
            if (block.first, block.last, block.sha256) == (end - size, end - 1, expected):
                return block
            log.warning(
                "reading the manifests instead of a rollup that sums up others: %s", manifests.store.where(name)
            )
        size //= manifests.manifests_per_rollup
    return Block.of(newest if newest.number == end - 1 else manifests.read(end - 1))


def _decoded(manifests: ManifestLog, name: str, data: bytes) -> Block:
    return decode(data, manifests.store.where(name), lambda body, _: Block.from_body(body, manifests.layout))


def _rollup_name(manifests: ManifestLog, first: int, last: int) -> str:
    return f"{manifests.home}/{ROLLUPS}/{first:020}-{last:020}.json"
