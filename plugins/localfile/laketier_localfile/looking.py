"""What each data file says of itself that lies in a folder: its columns, rows, digest and statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
import pyarrow.types as pt

from laketier.codecs.decoding import raise_if_nobodys
from laketier.codecs.said import said
from laketier.kit.partition import partition_text
from laketier.spi import CorruptTable, IncompatibleData, UnsupportedType
from laketier.tables.inference import SchemaSet
from laketier_localfile.file_formats.interface import FileFormat, Measured, Wanted
from laketier_localfile.layout import attempt_of
from laketier_localfile.lying import LyingFiles, LyingPlace
from laketier_localfile.parquet import Stats

_THREADS = 4
_AT_ONCE = 32
_NAMED = 3

T = TypeVar("T")
Progress = Callable[[int, int], None] | None
"""Gets the number of files that were looked at, and of all."""


@dataclass(frozen=True)
class LyingFile:
    """What a file says: ``schema`` its columns, as far as it tells them. ``is_own``: a writer of ours made it.
    ``measured``: what its rows tell, read as ``measured_as``; None until the table's columns are known."""

    path: str
    bytes: int
    file_format: FileFormat
    is_own: bool
    schema: pa.Schema
    measured: Measured | None
    measured_as: pa.Schema

    @property
    def rows(self) -> int:
        """How many it has. It is measured."""
        return self.told.rows

    @property
    def told(self) -> Measured:
        """What its rows told. It is measured."""
        if self.measured is None:
            raise AssertionError(f"{self.path} is not measured yet")
        return self.measured

    def stats_for(self, schema: pa.Schema) -> Stats:
        """Those that say the same of the table's columns: a bound of a number is none of a text."""
        stats = self.told.described.stats
        return {name: found for name, found in stats.items() if _same_order(self.measured_as, schema, name)}


def look_at(
    place: LyingPlace,
    lying: LyingFiles,
    chosen: FileFormat,
    schemas: SchemaSet,
    types: Mapping[str, pa.DataType],
    on_progress: Progress,
    *,
    durable: bool = True,
) -> list[LyingFile]:
    """What each file tells, in the order of the names. ``types``: those that the user chose. With ``durable`` each is
    synced, as its writer may not have. Those without records are left out. Raises `IncompatibleData` for files that are
    no whole files of the format, and `IncompatibleTable` for changed ones."""
    paths = sorted(lying.files)

    def look(path: str) -> LyingFile | None:
        is_own = attempt_of(path) is not None
        whole = not chosen.tells_by_ranges
        with place.opened(path, lying.files[path], durable=durable, whole=whole) as file:
            told = chosen.tell(file, path, lying.files[path][0], own=is_own, given=types)
        if told is None:
            return None
        return LyingFile(path, lying.files[path][0], chosen, is_own, told.schema, told.measured, told.schema)

    found = _all(place, paths, look, on_progress)
    for path, each in zip(paths, found, strict=True):
        if each is None:
            lying.left_out[path] = "it has no records"
        else:
            schemas.add(each.schema, each.path)
    if durable:
        place.sync({path.rpartition("/")[0] for path in paths})
    return [each for each in found if each is not None]


def measure(
    place: LyingPlace,
    lying: LyingFiles,
    files: Sequence[LyingFile],
    schema: pa.Schema,
    on_progress: Progress,
    *,
    durable: bool = True,
) -> list[LyingFile]:
    """The files with what their rows tell. Those of text are read as the table will read them, whole. Raises as
    `look_at`."""
    if all(file.measured is not None for file in files):
        return list(files)

    def one(path: str) -> LyingFile:
        file = by_path[path]
        with place.opened(path, lying.files[path], durable=durable, whole=True) as data:
            found = file.file_format.measure(data, path, file.bytes, schema, own=file.is_own)
        return replace(file, measured=found, measured_as=schema)

    by_path = {file.path: file for file in files}
    return _all(place, sorted(by_path), one, on_progress)


def _all(
    place: LyingPlace,
    paths: Sequence[str],
    look: Callable[[str], T],
    on_progress: Progress,
) -> list[T]:
    """What ``look`` gives of each, by a few threads. Raises `IncompatibleData` that names those of which it raised."""
    chunks = [paths[start : start + _AT_ONCE] for start in range(0, len(paths), _AT_ONCE)]
    found: list[T] = []
    failed: list[str] = []

    def some(chunk: Sequence[str]) -> tuple[list[T], list[str]]:
        good: list[T] = []
        bad: list[str] = []
        for path in chunk:
            try:
                good.append(look(path))
            except Exception as error:  # noqa: BLE001 - what a file makes a library raise is its own
                bad.append(f"{path}: {_why(error)}")
        return good, bad

    with ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="laketier-adopt") as pool:
        try:
            for good, bad in pool.map(some, chunks):
                found += good
                failed += bad
                if on_progress is not None:
                    on_progress(len(found) + len(failed), len(paths))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    if failed:
        raise IncompatibleData(
            f"{len(failed):,} of {len(paths):,} files can't be read",
            where=place.where,
            why=f"{'; '.join(failed[:_NAMED])}{'; …' if len(failed) > _NAMED else ''}",
            fix="Move them away, or name them _… so that plain readers skip them, too.",
        )
    return found


def _why(error: Exception) -> str:
    """What is wrong with a file. Raises what is the machine's fault, or that of who called."""
    if isinstance(error, FileNotFoundError):
        return "it is gone since the folder was listed"
    if isinstance(error, CorruptTable | IncompatibleData | UnsupportedType):
        return f"{error.what}{f': {error.why}' if error.why else ''}"
    raise_if_nobodys(error)
    return said(error)


def _rows_of(file: LyingFile, data: pa.NativeFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if file.is_own and not file.file_format.tells_types:
        return file.file_format.read(data, file.path, Wanted(schema, schema, file.rows))
    return file.file_format.lying_rows(data, file.path, file.bytes, schema)


def only_value(
    place: LyingPlace,
    file: LyingFile,
    column: pa.Field,
    texts: Callable[[pa.Array], Iterable[str | None]] | None = None,
) -> str | None:
    """The text of the one value that a file has of a partition column. ``texts``: those of an array's values, where the
    partition is more than the column. Raises `IncompatibleData` for several."""
    values: set[str | None] = set()
    with place.reopened(file.path, whole=not file.file_format.tells_by_ranges) as data:
        for batch in _rows_of(file, data, pa.schema([column])):
            found = batch.column(0).unique()
            values.update(map(partition_text, found.to_pylist()) if texts is None else texts(found))
            if len(values) > 1:
                raise IncompatibleData(
                    f"{file.path!r} has several values of the partition column {column.name!r}",
                    where=place.where,
                    fix="Split the file by that column, or do without partitions.",
                )
    return next(iter(values), None)


def _same_order(there: pa.Schema, table: pa.Schema, name: str) -> bool:
    if name not in table.names:
        return False
    one, other = there.field(name).type, table.field(name).type
    return one.equals(other) or (pt.is_signed_integer(one) and pt.is_signed_integer(other))
