"""The data files that lie in a folder, as plain readers find them, and what each says of itself."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.codecs.decoding import BadValue
from laketier.codecs.parquet_pages import check_chunks
from laketier.kit import LocalFolder
from laketier.kit.confine import escapes
from laketier.kit.durable import fsync_directory
from laketier.kit.manifests import Manifest
from laketier.kit.parquet_reader import open_parquet
from laketier.kit.partition import partition_text
from laketier.spi import CorruptTable, IncompatibleData, IncompatibleTable, OutsideTable, TableNotFound
from laketier.tables.evolution import logical_schema
from laketier.tables.inference import SchemaSet
from laketier_localfile.layout import IN_PROGRESS, LAYOUT, LOST, MANIFESTS, STAGED_SUFFIX, attempt_of, is_adoptable
from laketier_localfile.parquet import Stats, column_stats, footer_digest, has_bounds

_THREADS = 4
_AT_ONCE = 32
_NAMED = 3

Identity = tuple[int, int, int]
"""Size, time of change in ns, inode."""
_FOREIGN = (
    ("_delta_log", "Delta Lake"),
    (".hoodie", "Hudi"),
    ("_versions", "Lance"),
    ("_laketier_manifests", "laketier"),
)


@dataclass(frozen=True)
class LyingFiles:
    """``files``: path → what it is now. ``left_out``: other files, and why they are none of a table's."""

    files: dict[str, Identity]
    left_out: dict[str, str]

    @classmethod
    def below(cls, location: Path) -> LyingFiles:
        """List them. Raises `TableNotFound`, `OutsideTable` for a link, which plain readers would follow, and
        `IncompatibleTable` for folders of tables and of other file systems."""
        found = cls({}, {})
        try:
            device = os.stat(location).st_dev
            _walk(found, location, "", device)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise TableNotFound("there is no such folder", where=str(location)) from error
        return found

    def refuse_changed(self, location: Path, found: LyingFiles | None = None) -> None:
        """Raise `IncompatibleTable` unless the same files lie there as before, and none has changed. ``found``: what
        lies there now."""
        now = (found or LyingFiles.below(location)).files
        changed = sorted(path for path in now.keys() | self.files.keys() if now.get(path) != self.files.get(path))
        if changed:
            raise IncompatibleTable(
                f"{len(changed):,} files changed while the folder was looked at: {', '.join(changed[:_NAMED])}",
                where=str(location),
                why="something still writes there",
                fix="Stop what writes into the folder, and run it again.",
            )


@dataclass(frozen=True)
class LyingFile:
    """What a file says: ``schema`` its columns, ``stats`` of those that have some."""

    path: str
    rows: int
    bytes: int
    footer: str
    schema: pa.Schema
    stats: Stats

    def stats_for(self, schema: pa.Schema) -> Stats:
        """Those that say the same of the table's columns: a bound of a number is none of a text."""
        return {name: found for name, found in self.stats.items() if _same_order(self.schema, schema, name)}


def refuse_within_table(location: Path) -> None:
    """Raise `IncompatibleTable` for a folder within that of a table: its files would be of two tables, of which one
    moves away what the other needs."""
    for folder in location.parents:
        for name, kind in _FOREIGN:
            if (folder / name).is_dir():
                raise IncompatibleTable(
                    "the folder lies within a table",
                    where=str(location),
                    why=f"{folder} is a table of {kind}",
                    fix="Move the folder out of that table, and adopt it there.",
                )


def look_at(
    location: Path, lying: LyingFiles, schemas: SchemaSet, on_progress: Callable[[int, int], None] | None
) -> list[LyingFile]:
    """Each file's footer, in the order of the names; it is made durable, too, as its writer may not have. Raises
    `IncompatibleData` for files that are no whole Parquet files, and `IncompatibleTable` for changed ones."""
    paths = sorted(lying.files)
    chunks = [paths[start : start + _AT_ONCE] for start in range(0, len(paths), _AT_ONCE)]
    found: list[LyingFile] = []
    failed: list[tuple[str, str]] = []

    def look(chunk: Sequence[str]) -> list[LyingFile | tuple[str, str]]:
        return [_look(location, path, lying.files[path]) for path in chunk]

    with ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="laketier-adopt") as pool:
        for part in pool.map(look, chunks):
            for each in part:
                if isinstance(each, tuple):
                    failed.append(each)
                    continue
                found.append(each)
                schemas.add(each.schema, each.path)
            if on_progress is not None:
                on_progress(len(found) + len(failed), len(paths))
    if failed:
        named = "; ".join(f"{path}: {why}" for path, why in failed[:_NAMED])
        raise IncompatibleData(
            f"{len(failed):,} of {len(paths):,} files can't be read",
            where=str(location),
            why=f"{named}{'; …' if len(failed) > _NAMED else ''}",
            fix="Move them away, or name them _… so that plain readers skip them, too.",
        )
    for folder in {os.path.dirname(path) for path in paths}:
        fsync_directory(location / folder)
    return found


def only_value(
    location: Path, path: str, column: str, texts: Callable[[pa.Array], Iterable[str | None]] | None = None
) -> str | None:
    """The text of the one value that a file has of a partition column. ``texts``: those of an array's values, where the
    partition is more than the column. Raises `IncompatibleData` for several."""
    with open_parquet(pa.OSFile(str(location / path)), checksums=True) as file:
        values: set[str | None] = set()
        for batch in file.iter_batches(columns=[column]):
            found = batch.column(0).unique()
            values.update(map(partition_text, found.to_pylist()) if texts is None else texts(found))
            if len(values) > 1:
                raise IncompatibleData(
                    f"{path!r} has several values of the partition column {column!r}",
                    where=str(location),
                    fix="Split the file by that column, or do without partitions.",
                )
    return next(iter(values), None)


def _walk(lying: LyingFiles, location: Path, prefix: str, device: int) -> None:
    with os.scandir(location / prefix) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    _refuse_tables(location / prefix, [entry.name for entry in found], top=not prefix)
    for entry in found:
        path = f"{prefix}{entry.name}"
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_symlink():
            raise OutsideTable(
                f"{path!r} is a symbolic link",
                where=str(location),
                why="plain readers follow it, and a table has only what lies in its own folder",
                fix="Put the file itself there, or name the link _….",
            )
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            _walk(lying, location, f"{path}/", device)
        elif not stat.S_ISREG(status.st_mode) or not is_adoptable(path):
            lying.left_out[path] = "it is no Parquet file by its name"
        elif (why := escapes(path)) is not None:
            raise OutsideTable(f"{path!a} can't be a file of a table", where=str(location), why=why, fix="Rename it.")
        elif status.st_dev != device:
            raise IncompatibleTable(
                f"{path!r} is on another file system than the folder",
                where=str(location),
                why="files that are replaced are moved, which works only within one",
                fix="Put all files on one file system.",
            )
        else:
            lying.files[path] = _identity(status)


def left_of_table(location: Path) -> str | None:
    """A file that a table of laketier left there, None where there is none. Cheap for folders of others."""
    if not any((location / name).is_dir() for name in LAYOUT.own_folders):
        return None
    for path in (location / MANIFESTS).glob(f"*{LOST}"):
        return str(path.relative_to(location))
    for path in (location / MANIFESTS).glob("*/head.json"):
        if _had_rows(path.parent):
            return str(path.relative_to(location))
    deleted = not (location / MANIFESTS).exists()  # it is made before the others
    for folder, folders, names in os.walk(location):
        for name in names:
            own = attempt_of(name) is not None and not name.endswith(STAGED_SUFFIX)
            if own or (deleted and is_adoptable(name)):
                return os.path.relpath(os.path.join(folder, name), location)
        folders[:] = [name for name in folders if name not in (MANIFESTS, IN_PROGRESS)]
    return None


def _had_rows(manifests: Path) -> bool:
    """Whether a chain of manifests is more than the creation of an empty table, which can be made again."""
    if (manifests / f"{1:020}.json").exists():
        return True
    try:
        return bool(Manifest.read(manifests / f"{0:020}.json", LAYOUT).added)
    except FileNotFoundError:
        return False
    except CorruptTable:
        return True


def _look(location: Path, path: str, known: Identity) -> LyingFile | tuple[str, str]:
    try:
        with os.fdopen(LocalFolder(location).open(path), "rb") as file:
            status = os.fstat(file.fileno())
            if _identity(status) != known:
                return path, "it changed while it was looked at"
            digest = footer_digest(file, status.st_size)
            file.seek(0)
            with open_parquet(file, checksums=True) as parquet:
                check_chunks(file, status.st_size, parquet.metadata)
                schema = logical_schema(parquet.schema_arrow.remove_metadata())
                stats = _checked(parquet.metadata, schema)
                rows = parquet.metadata.num_rows
            os.fsync(file.fileno())
            return LyingFile(path, rows, status.st_size, digest, schema, stats)
    except FileNotFoundError:
        return path, "it is gone since the folder was listed"
    except CorruptTable as error:
        return path, error.what
    except BadValue as error:
        return path, str(error)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        return path, str(error)


def _checked(footer: Any, schema: pa.Schema) -> Stats:
    """The footer's own word, of columns whose names say which they are."""
    plain = pa.schema([column for column in schema if "." not in column.name and has_bounds(column.type)])
    places = {footer.schema.column(at).path for at in range(footer.num_columns)}
    stats = column_stats(footer, pa.schema([column for column in plain if column.name in places]))
    return {name: each for name, each in stats.items() if 0 <= each[2] <= footer.num_rows}


def _same_order(there: pa.Schema, table: pa.Schema, name: str) -> bool:
    if name not in table.names:
        return False
    one, other = there.field(name).type, table.field(name).type
    return one.equals(other) or (pt.is_signed_integer(one) and pt.is_signed_integer(other))


def _refuse_tables(folder: Path, names: Sequence[str], *, top: bool) -> None:
    """A folder of any format's own means that another table's rules say which of the files count."""
    marks = [(name, kind) for name, kind in _FOREIGN if name in names and not (top and kind == "laketier")]
    if "metadata" in names:
        marks += [("metadata", "Iceberg") for _ in folder.glob("metadata/*.metadata.json")]
    if marks:
        name, kind = marks[0]
        raise IncompatibleTable(
            f"the folder is a table of {kind}",
            where=str(folder),
            why=f"it holds {name}, which says what of the other files counts",
            fix="Read it as such a table, and write its rows into a new one.",
        )


def _identity(status: os.stat_result) -> Identity:
    return status.st_size, status.st_mtime_ns, status.st_ino
