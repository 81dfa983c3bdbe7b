"""Files of a landing zone, one by one and many as columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

ROOT_TABLE = "."
"""The table that the landing zone itself is."""
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LandedFile:
    """One file. ``path`` is relative to the table's folder, ``size`` in bytes, ``mtime_ns`` since the epoch, UTC.
    ``inode``: what tells it from another file under its name, 0 where the storage has nothing like it."""

    path: str
    size: int
    mtime_ns: int
    inode: int = 0


@dataclass(frozen=True)
class LandedPart:
    """The part of a table that a split reads: a file, or the row groups ``groups`` (the first and the last) of one.
    ``place``: where it was when it was planned, as it may have been renamed since it was taken."""

    entry: LandedFile
    place: str
    groups: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Files:
    """Files by the same columns, for work on 100,000 of them at once."""

    paths: Any
    sizes: Numbers
    mtimes: Numbers
    inodes: Numbers

    @classmethod
    def of(
        cls, paths: Sequence[str], sizes: Sequence[int], mtimes: Sequence[int], inodes: Sequence[int] | None = None
    ) -> Files:
        numbers = np.zeros(len(paths), np.int64) if inodes is None else np.array(inodes, np.int64)
        return cls(pa.array(paths, pa.string()), np.array(sizes, np.int64), np.array(mtimes, np.int64), numbers)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, at: int) -> LandedFile:
        return LandedFile(self.paths[at].as_py(), int(self.sizes[at]), int(self.mtimes[at]), int(self.inodes[at]))

    def entries(self, start: int, end: int) -> list[LandedFile]:
        """Those from ``start`` to ``end``, one by one."""
        part = slice(start, end)
        columns = [self.paths[part].to_pylist()]
        columns += [numbers[part].tolist() for numbers in (self.sizes, self.mtimes, self.inodes)]
        return list(itertools.starmap(LandedFile, zip(*columns, strict=True)))

    def take(self, indexes: Any) -> Files:
        """These, in this order."""
        numbers = (column[indexes] for column in (self.sizes, self.mtimes, self.inodes))
        return Files(self.paths.take(pa.array(indexes)), *numbers)

    @classmethod
    def concat(cls, parts: Sequence[Files]) -> Files:
        return cls(
            pa.concat_arrays([part.paths for part in parts]),
            np.concatenate([part.sizes for part in parts]),
            np.concatenate([part.mtimes for part in parts]),
            np.concatenate([part.inodes for part in parts]),
        )

    def places_in(self, known: Files) -> Numbers:
        """For each file, its index in ``known``; -1 where it is not there."""
        found = pc.fill_null(pc.index_in(self.paths, value_set=known.paths), -1)
        return found.to_numpy(zero_copy_only=False).astype(np.int64)


# Not by `pa.array`, which imports pandas where it is installed: whoever starts the command line would wait for it.
NO_FILES = Files(pa.nulls(0, pa.string()), *(np.zeros(0, np.int64) for _ in range(3)))
