"""The fragments that one task reads, and the size of its batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from laketier.spi import CorruptTable
from laketier_lance.dataset import lance_errors, reason
from laketier_lance.private import data_path

if TYPE_CHECKING:
    from lance.fragment import DataFile, LanceFragment

_SPLIT_BYTES = 128 * 1024**2
_FEW_FRAGMENTS = 16
_BATCH_BYTES = 32 * 1024**2
_LARGEST_BATCH = 65_536
_SMALLEST_BATCH = 1_024


@dataclass(frozen=True)
class Fragment:
    """A fragment with rows. ``bytes``: of its data files. ``file``: the name of the last one."""

    id: int
    rows: int
    bytes: int
    file: str = ""


@dataclass(frozen=True)
class FragmentRun:
    """The payload of a split: these fragments of a version. ``condition``: in SQL, empty for all rows.
    ``names_then``: the name of a column as asked for → its name in that version, or None; of columns that came
    later, or were renamed or widened, alone. ``file``: the last data file of the last fragment, whose name is random:
    a table that is made again has the same numbers, and never the same files."""

    version: int
    fragments: tuple[int, ...]
    batch_rows: int
    condition: str = ""
    names_then: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    file: str = ""

    @classmethod
    def of(
        cls,
        group: Sequence[Fragment],
        version: int,
        condition: str = "",
        names_then: Mapping[str, str | None] = MappingProxyType({}),
    ) -> FragmentRun:
        """In batches of so many rows that wide ones, vectors above all, don't make gigabytes."""
        ids = tuple(fragment.id for fragment in group)
        return cls(version, ids, _batch_rows(group), condition, dict(names_then), group[-1].file)


def fragments_of(fragments: Iterable[LanceFragment]) -> list[Fragment]:
    """Those that have rows."""
    found = []
    for fragment in fragments:
        files = fragment.metadata.files
        size = sum(file.file_size_bytes or 0 for file in files)
        if rows := rows_of(fragment):
            found.append(Fragment(fragment.fragment_id, rows, size, last_of(files)))
    return found


def last_of(files: Sequence[DataFile]) -> str:
    """The name of the last one; empty without any."""
    return data_path(files[-1]) if files else ""


def rows_of(fragment: LanceFragment) -> int:
    """Those that are not deleted. Lance writes no number where there are none, and where there is no number, reads the
    file. Raises `CorruptTable` where it can't."""
    if fragment.metadata.physical_rows is not None:
        return int(fragment.metadata.num_rows)
    try:
        return int(fragment.count_rows())
    except lance_errors() as error:
        raise CorruptTable(
            f"fragment {fragment.fragment_id} has no number of rows, and its file does not tell", why=reason(error)
        ) from error


def grouped(fragments: list[Fragment], most_rows: int) -> list[list[Fragment]]:
    """Runs of fragments: one each while they are few, as each gives a task its work; small ones together after."""
    if len(fragments) <= _FEW_FRAGMENTS:
        return [[fragment] for fragment in fragments]
    groups: list[list[Fragment]] = []
    rows = size = 0
    for fragment in fragments:
        if not groups or rows + fragment.rows > most_rows or size + fragment.bytes > _SPLIT_BYTES:
            groups.append([])
            rows = size = 0
        groups[-1].append(fragment)
        rows += fragment.rows
        size += fragment.bytes
    return groups


def _batch_rows(group: Sequence[Fragment]) -> int:
    rows = sum(fragment.rows for fragment in group)
    width = sum(fragment.bytes for fragment in group) // max(rows, 1)
    return max(_SMALLEST_BATCH, min(_LARGEST_BATCH, _BATCH_BYTES // max(width, 1)))
