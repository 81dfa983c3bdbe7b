"""The schema of a folder: of all its files, or of a share of them that is always the same one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

import pyarrow as pa

from laketier.codecs.said import said
from laketier.connectors.files.folder import Folder
from laketier.connectors.files.headers import file_schema
from laketier.connectors.files.local import Astray, escaped
from laketier.connectors.files.options import FileFormat, LandingTableOptions
from laketier.connectors.files.readers import COMPRESSED, UnreadableFile
from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import ConfigError, IncompatibleData, LaketierError
from laketier.tables.hive import HivePartitions
from laketier.tables.inference import SchemaSet, refuse_misplaced_types, refuse_strangers
from laketier.tables.promotion import Spelling

SAMPLE = 1000
"""So many files of a large folder are looked at, unless more are asked for."""
_THREADS = min(8, 2 * (os.cpu_count() or 1))
_AT_ONCE = 32
_NAMED = 3
_ENDINGS = {
    ".parquet": FileFormat.PARQUET,
    ".json": FileFormat.JSON,
    ".jsonl": FileFormat.JSON,
    ".ndjson": FileFormat.JSON,
    ".csv": FileFormat.CSV,
    ".arrow": FileFormat.ARROW,
    ".feather": FileFormat.ARROW,
    ".ipc": FileFormat.ARROW,
    ".avro": FileFormat.AVRO,
}
_TABLES_OWN = "it is of a table, and says which of the other files count: all are looked at"
SPELLINGS = {FileFormat.JSON: Spelling.JSON, FileFormat.CSV: Spelling.CSV}

OnProgress = Callable[[int, int], None]
"""Gets how many files were looked at, and of how many."""


@dataclass(frozen=True)
class Inferred:
    """The columns of a folder's files. ``files``: how many it has of ``format``; ``read``: how many of these were
    looked at. ``partitions``: columns from the names of folders, the last of ``schema``. ``left_out``: files that say
    nothing of the columns, and why. ``schemas``: those that differ, each with the first file that has it. ``begun``:
    of how many files, which are of text, no more than the first 8 MiB of lines were looked at."""

    schema: pa.Schema
    format: FileFormat
    files: int
    read: int
    partitions: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    schemas: Sequence[tuple[str, pa.Schema]] = ()
    begun: int = 0

    @property
    def share(self) -> str:
        """How much was looked at, in words."""
        begun = f", of {self.begun:,} no more than 8 MiB of lines" if self.begun else ""
        if self.read >= self.files:
            return f"read {self.files:,} files{begun}"
        percent = 100 * self.read / self.files
        return f"sampled {self.read:,} of {self.files:,} files ({percent:.{0 if percent >= 1 else 2}f} %){begun}"


def infer_folder(
    folder: Folder,
    options: LandingTableOptions | None = None,
    *,
    sample: int | None = SAMPLE,
    whole: bool = False,
    partitions: bool = False,
    given: Mapping[str, pa.DataType] | None = None,
    on_progress: OnProgress | None = None,
) -> Inferred:
    """What all files of a folder can be read as. Driver.

    ``options``: how the files are written; None to tell their format by their names. ``sample``: so many files are
    looked at, evenly spread over all by name, the first and the last among them; None for all. ``whole``: all lines of
    a file of text, instead of its first 8 MiB. ``partitions``: folders named ``column=value`` are columns, too.
    ``given``: types that were chosen, for columns whose files disagree. ``on_progress`` is called by this thread.

    Raises `TableNotFound`, `StorageError`, and `IncompatibleData` for files that can't be read, that name no columns
    or whose columns have no common type; `ConfigError` where the format can't be told.
    """
    with naming_storage_errors("the columns of files were looked up"):
        listing = folder.listed()
        left_out = dict(listing.refused)
        if listing.mark is not None:
            left_out[escaped(listing.mark)] = _TABLES_OWN
        sized = dict(zip(listing.files.paths.to_pylist(), listing.files.sizes.tolist(), strict=True))
        options, names = _of_one_format(sorted(sized), options, left_out, where=folder.open()[1])
        for name in [name for name in names if not sized[name]]:
            left_out[escaped(name)] = "it is empty"
        names = [name for name in names if sized[name]]
        taken = spread(names, sample)
        found = _look(folder, options, taken, whole, given, on_progress)
    _refuse_unreadable(found.failed, len(taken), where=folder.open()[1])
    left_out |= found.left_out
    if not found.schemas.files:
        name, why = next(iter(sorted(left_out.items())))
        of_all = f", a sample of {len(names):,}," if len(taken) < len(names) else ""
        raise IncompatibleData(
            f"none of {len(taken) or len(sized):,} files{of_all} tells columns",
            where=folder.open()[1],
            why=f"{name}: {why}{'; …' if len(left_out) > 1 else ''}",
            fix="Put files with records there, or give the columns.",
        )
    refuse_strangers(found.schemas, folder.open()[1])
    schema = found.schemas.schema(given)
    if not len(schema):
        raise IncompatibleData(
            f"the records of {found.schemas.schemas()[0][0]!r} have no fields, and nor have those of other files",
            where=folder.open()[1],
            why="a table needs a column, and rows without any would be lost",
            fix="Move the files away, or give the columns.",
        )
    hive = HivePartitions.of(names) if partitions else HivePartitions()
    schema = hive.added_to(schema, given)
    if len(taken) == len(names):
        refuse_misplaced_types(given, schema, folder.open()[1])
    return Inferred(
        schema=schema,
        format=options.format,
        files=len(names),
        read=len(taken),
        partitions=hive.names,
        left_out=left_out,
        schemas=found.schemas.schemas(),
        begun=found.begun,
    )


def spread(names: Sequence[str], most: int | None) -> list[str]:
    """So many of these, evenly spread, with the first and the last. Always the same ones of the same names."""
    if most is not None and most < 1:
        raise ConfigError(f"a sample of {most} files is none", fix="Give 1 or more.")
    if most is None or len(names) <= most:
        return list(names)
    if most == 1:
        return [names[-1]]
    return [names[at * (len(names) - 1) // (most - 1)] for at in range(most)]


@dataclass
class _Found:
    schemas: SchemaSet
    left_out: dict[str, str] = field(default_factory=dict)
    failed: list[tuple[str, str]] = field(default_factory=list)
    begun: int = 0

    def update(self, other: _Found) -> None:
        self.schemas.update([other.schemas])
        self.left_out |= other.left_out
        self.failed += other.failed
        self.begun += other.begun

    def add_begun(self) -> None:
        self.begun += 1


def _look(
    folder: Folder,
    options: LandingTableOptions,
    names: Sequence[str],
    whole: bool,
    given: Mapping[str, pa.DataType] | None,
    on_progress: OnProgress | None,
) -> _Found:
    """By a few threads, which read more than they compute."""
    spelling = SPELLINGS.get(options.format, Spelling.TYPED)
    chunks = [names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE)]

    def look(chunk: Sequence[str]) -> _Found:
        found = _Found(SchemaSet(spelling))
        for name in chunk:
            _look_at(folder, options, name, whole, given, found)
        return found

    total = _Found(SchemaSet(spelling))
    done = 0
    with ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="laketier-infer") as pool:
        try:
            for chunk, found in zip(chunks, pool.map(look, chunks), strict=True):
                total.update(found)
                done += len(chunk)
                if on_progress is not None:
                    on_progress(done, len(names))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return total


def _look_at(
    folder: Folder,
    options: LandingTableOptions,
    name: str,
    whole: bool,
    given: Mapping[str, pa.DataType] | None,
    found: _Found,
) -> None:
    try:
        schema = file_schema(folder, name, options, whole=whole, given=given, on_cut=found.add_begun)
        if schema is None:
            found.left_out[escaped(name)] = "it has no records"
        else:
            found.schemas.add(schema, name)
    except (FileNotFoundError, NotADirectoryError):
        found.left_out[escaped(name)] = "it is gone since the folder was listed"
    except (UnreadableFile, Astray) as error:
        found.failed.append((name, said(error)))
    except IncompatibleData as error:
        found.failed.append((name, said(_without_place(error))))


def _without_place(error: LaketierError) -> LaketierError:
    """The error without its place, which is told beside it."""
    return type(error)(error.what, why=error.why)


def _refuse_unreadable(failed: Sequence[tuple[str, str]], looked_at: int, *, where: str) -> None:
    if not failed:
        return
    named = "; ".join(f"{escaped(name)}: {why}" for name, why in sorted(failed)[:_NAMED])
    raise IncompatibleData(
        f"{len(failed):,} of {looked_at:,} files can't be read",
        where=where,
        why=f"{named}{'; …' if len(failed) > _NAMED else ''}",
        fix="Move them away, or name them _… to leave them out. If they are of another format, name it.",
    )


def _of_one_format(
    names: Sequence[str], options: LandingTableOptions | None, left_out: dict[str, str], *, where: str
) -> tuple[LandingTableOptions, list[str]]:
    """The files to look at. With a format given, all whose names do not say that they are of another one."""
    formats = {name: format_of(name) for name in names}
    if options is None:
        counts = Counter(kind for kind in formats.values() if kind is not None)
        if len(counts) != 1:
            there = ", ".join(f"{count:,} of {kind.value}" for kind, count in counts.most_common()) or "none"
            raise ConfigError(
                "the format of the files can't be told by their names",
                where=where,
                why=f"there are {there}, of {len(names):,} files",
                fix=f"Name it: {', '.join(kind.value for kind in FileFormat)}.",
            )
        options = replace(LandingTableOptions(), format=next(iter(counts)))
        names = [name for name in names if formats[name] is not None or _left(left_out, name)]
    wanted = options.format
    for name in names:
        kind = formats[name]
        if kind not in (None, wanted):
            left_out[escaped(name)] = f"it is named as a file of {kind.value}"
    kept = [name for name in names if formats[name] in (None, wanted)]
    if not kept:
        raise IncompatibleData(
            f"the folder holds no file of {wanted.value}", where=where, fix="Name another folder, or another format."
        )
    return options, kept


def _left(left_out: dict[str, str], name: str) -> bool:
    left_out[escaped(name)] = "its name tells no format"
    return False


def format_of(name: str) -> FileFormat | None:
    """The format that a file's name tells. Lines may be compressed."""
    path = PurePosixPath(name.lower())
    ending = path.suffix
    if ending in COMPRESSED:
        found = _ENDINGS.get(PurePosixPath(path.stem).suffix)
        return found if found is not None and found.is_text else None
    return _ENDINGS.get(ending)
