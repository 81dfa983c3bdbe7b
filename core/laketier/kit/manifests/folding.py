"""Small epochs must not make small files: once enough of them have gathered, a commit also writes them as one.

The rule is that of a tiered merge (size-tiered compaction of LSM trees; O'Neil et al., 1996). A file that a writer
staged has *level* 0, a file that holds the rows of folded files has the level above theirs. When a commit would leave
more than `FoldSettings.files` small files of one level in a partition and bucket, those that were there before it are
written again as one file of the next level, in the same commit. So each row is written once per level, and a table
holds at most that many small files per level, partition and bucket.

The files of the commit's own rows are never folded by it: they are the change that a reader of commits sees.

Looking at all live files in each commit would make a commit as slow as the table is large. So each manifest says how
many more small files any partition can take before a look is due (`Room`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from laketier.kit.manifests.file_entry import FileEntry

_ANY_ROWS = 1 << 62
_AT_ONCE = 4
"""So many times the files of an ordinary set, or of the commit itself, are read and written at most by one commit."""

Group = tuple[tuple[tuple[str, str | None], ...], int | None]


@dataclass(frozen=True)
class FoldSettings:
    """When small files are folded. ``files``: how many small files of one level a partition and bucket keeps, at least
    2. ``file_bytes``: a file is small below this size. ``file_rows``: and with fewer rows. Both are no more than where
    a writer ends a file: files as large as their writer makes them would be folded in vain, by each commit anew."""

    files: int
    file_bytes: int
    file_rows: int = _ANY_ROWS

    def is_small(self, entry: FileEntry) -> bool:
        """Whether ``entry`` counts. A file that still grows does not: what it becomes is not known yet."""
        return entry.bytes < self.file_bytes and entry.rows < self.file_rows and not entry.is_open


@dataclass(frozen=True)
class Room:
    """How many more small files of one level each partition and bucket can take, at least, as of a manifest. It holds
    for these ``settings`` alone."""

    settings: FoldSettings
    files: int

    def to_plain(self) -> dict[str, int]:
        """As JSON's own types."""
        rows = {} if self.settings.file_rows == _ANY_ROWS else {"file_rows": self.settings.file_rows}
        return {"files": self.settings.files, "file_bytes": self.settings.file_bytes, **rows, "room": self.files}

    @classmethod
    def from_plain(cls, plain: Any) -> Room | None:
        """Undo `to_plain`. None where a manifest says nothing, or nothing that can be understood: then a look is due,
        which costs time and nothing else."""
        if not isinstance(plain, Mapping):
            return None
        numbers = [number for name in ("files", "file_bytes", "room") if type(number := plain.get(name)) is int]
        rows = plain.get("file_rows", _ANY_ROWS)
        if len(numbers) != 3 or type(rows) is not int:
            return None
        return cls(FoldSettings(numbers[0], numbers[1], rows), numbers[2])


def room_after(settings: FoldSettings, head: Room | None, added: Sequence[FileEntry]) -> Room | None:
    """The room that is left after a commit that adds these files and folds none. None where a look is due."""
    if head is None or head.settings != settings:
        return None
    left = head.files - _fullest(settings, added)
    return None if left < 0 else Room(settings, left)


def room_of(settings: FoldSettings, files: Iterable[FileEntry]) -> Room:
    """The room that these live files leave. Below 0 where one commit alone added too many: the next folds them."""
    return Room(settings, settings.files - _fullest(settings, files))


def due(settings: FoldSettings, live: Sequence[FileEntry], added: Sequence[FileEntry]) -> list[list[FileEntry]]:
    """The sets of ``live`` files to be folded by a commit that adds ``added``, each in the order in which they were
    added. A set has at least two files of one level, partition and bucket. What is too much for one commit is left to
    the next ones, lower levels first: an old table may have any number of small files, and all partitions of a table
    may have too many in the same epoch."""
    counts = Counter(_key(entry) for entry in added if settings.is_small(entry))
    small: dict[tuple[Group, int], list[FileEntry]] = {}
    for entry in live:
        if settings.is_small(entry):
            small.setdefault(_key(entry), []).append(entry)
    left = _AT_ONCE * max(settings.files, len(added))
    found = []
    for group, level in sorted(small, key=lambda key: key[1]):
        files = small[group, level]
        if len(files) >= 2 and len(files) + counts[group, level] > settings.files:
            files = _within(settings, files[:left])
            if len(files) < 2:
                break
            left -= len(files)
            found.append(files)
            # The file that they become may be one too many of the next level.
            counts[group, level + 1] += 1
    return found


def _within(settings: FoldSettings, files: Sequence[FileEntry]) -> list[FileEntry]:
    """The first of them, as many as an ordinary set of the largest small files has bytes."""
    sizes, most = accumulate(entry.bytes for entry in files), max(2, settings.files) * settings.file_bytes
    return [entry for entry, size in zip(files, sizes, strict=True) if size <= most]


def _fullest(settings: FoldSettings, files: Iterable[FileEntry]) -> int:
    counts = Counter(_key(entry) for entry in files if settings.is_small(entry))
    return max(counts.values(), default=0)


def _key(entry: FileEntry) -> tuple[Group, int]:
    return (entry.partition, entry.bucket), entry.level
