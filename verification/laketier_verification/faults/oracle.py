"""What is in a table, told without laketier: rows by readers of others, files by each format's own metadata.

Everything here looks at local warehouses only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.spi import FeatureNotSupported, LakeStorage, OrphanFile, TableInfo
from laketier_verification.faults import referenced

_LATER_MILLISECONDS = 60_000
"""Orphans are asked for as of a moment that no file is younger than."""


def foreign_column(format: str, info: TableInfo, column: str) -> list[Any]:
    """All values of a column, doubles included, in no order. Formats: delta, iceberg, lance, localfile."""
    values: list[Any] = _READERS[format](info, column)[column].to_pylist()
    return values


def foreign_ids(format: str, info: TableInfo) -> list[int]:
    """All ids, sorted; a double is there twice."""
    ids: list[int] = sorted(foreign_column(format, info, "id"))
    return ids


def _deltalake(info: TableInfo, column: str) -> pa.Table:
    import deltalake

    return deltalake.DeltaTable(info.location).to_pyarrow_table(columns=[column])


def _pyiceberg(info: TableInfo, column: str) -> pa.Table:
    return referenced.iceberg_table(info).scan(selected_fields=(column,)).to_arrow()


def _pylance(info: TableInfo, column: str) -> pa.Table:
    import lance

    return lance.dataset(info.location).to_table(columns=[column])


def _plain(info: TableInfo, column: str) -> pa.Table:
    """As plain readers of Hive-style folders do: whatever lies at a final path, and no laketier metadata."""
    root = Path(info.location)
    paths = (path for path in root.rglob("*") if path.is_file())
    files = [path for path in paths if not any(part.startswith("_") for part in path.relative_to(root).parts)]
    nothing = pa.table({column: pa.array([], info.schema.field(column).type)})
    by_suffix = {suffix: sorted(str(path) for path in files if path.suffix == suffix) for suffix in _PLAIN}
    unknown = [path for path in files if path.suffix not in _PLAIN]
    if unknown:
        raise ValueError(f"no reader knows {unknown}")
    found = [_PLAIN[suffix](names, column) for suffix, names in by_suffix.items() if names]
    return pa.concat_tables([nothing, *(table.cast(nothing.schema) for table in found)])


def _parquet(files: Sequence[str], column: str) -> pa.Table:
    import pyarrow.dataset as ds

    return ds.dataset(files, format="parquet").to_table(columns=[column])


def _duckdb(files: Sequence[str], column: str, function: str) -> pa.Table:
    import duckdb

    found = duckdb.execute(f'SELECT "{column}" FROM {function}(?)', [list(files)]).fetchall()
    return pa.table({column: [value for (value,) in found]})


def _polars_ipc(files: Sequence[str], column: str) -> pa.Table:
    import polars

    return polars.concat([polars.read_ipc(file, columns=[column]) for file in files]).to_arrow()


_PLAIN: Mapping[str, Callable[[Sequence[str], str], pa.Table]] = {
    ".parquet": _parquet,
    ".json": partial(_duckdb, function="read_json"),
    ".csv": partial(_duckdb, function="read_csv"),
    ".arrow": _polars_ipc,
}


_READERS: Mapping[str, Callable[[TableInfo, str], pa.Table]] = {
    "delta": _deltalake,
    "iceberg": _pyiceberg,
    "lance": _pylance,
    "localfile": _plain,
}


# -- rows ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """How what was found differs from what should be there. Counts of rows; ``torn`` are epochs.

    ``torn``: epochs of which some rows are visible, and some are not. ``alien``: rows that nobody sent.
    """

    lost: int = 0
    doubled: int = 0
    alien: int = 0
    torn: tuple[int, ...] = ()

    @property
    def none(self) -> bool:
        """Every expected row is there once, and no other."""
        return not (self.lost or self.doubled or self.alien or self.torn)

    @classmethod
    def between(cls, expected: Mapping[int, Iterable[int]], found: Iterable[int]) -> Difference:
        """``expected``: epoch → the ids that it has. For a table in mid-flight give the acknowledged epochs."""
        seen = Counter(found)
        epochs = {epoch: Counter(ids) for epoch, ids in expected.items()}
        should = sum(epochs.values(), Counter[int]())
        return cls(
            lost=(should - seen).total(),
            doubled=sum(count for value, count in (seen - should).items() if value in should),
            alien=sum(count for value, count in seen.items() if value not in should),
            torn=tuple(epoch for epoch, ids in epochs.items() if 0 < sum(1 for value in ids if seen[value]) < len(ids)),
        )


# -- files --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leftovers:
    """What lies below a table's location and no snapshot needs. Paths are relative to it.

    ``unreferenced``: all of it, as the format's own metadata says. ``unexplained``: what orphan collection would not
    find either: a leak; with ``built`` False (the format has no orphan collection) it is empty and says nothing.
    ``endangered``: what orphan collection would delete although the current snapshot needs it.
    """

    built: bool
    unreferenced: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()
    endangered: tuple[str, ...] = ()


def unexplained(format: str, storage: LakeStorage, info: TableInfo) -> Leftovers:
    """Files on disk, less those that any readable snapshot needs, less those that the plugin calls orphans."""
    orphans = _orphans(storage, info)  # first: looking for orphans may finish what a crashed commit left
    needed = referenced.files(format, info)
    root = Path(info.location)
    present = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    unreferenced = present - needed.by_any_snapshot
    if orphans is None:
        return Leftovers(False, tuple(sorted(unreferenced)))
    named = {orphan.path for orphan in orphans}
    return Leftovers(
        True,
        tuple(sorted(unreferenced)),
        tuple(sorted(unreferenced - named)),
        tuple(sorted(named & needed.by_current)),
    )


def _orphans(storage: LakeStorage, info: TableInfo) -> Sequence[OrphanFile] | None:
    try:
        return storage.maintenance(info).orphans(time.time_ns() // 1_000_000 + _LATER_MILLISECONDS)
    except FeatureNotSupported:
        return None
