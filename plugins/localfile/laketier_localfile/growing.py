"""The committing half of files that stay open across epochs: checked, and finished for processes that are gone.

The rules are those of `laketier.kit.manifests.open_files`; here is what they mean for files on a disk. A file that is
finished for somebody else is a new one with a name of its own, so it has another inode than the one that a process
which wakes up still appends to.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from laketier.kit import LocalFolder
from laketier.kit.durable import fsync_directory, fsync_file
from laketier.kit.failpoints import failpoint
from laketier.kit.manifests import FileEntry, Growth, ManifestState, growth_of
from laketier.spi import CorruptTable, Overtaken, StagedFile, StagedFileLost, WriteResult, new_attempt_id
from laketier_localfile.claims import claim, format_of
from laketier_localfile.file_formats.interface import Described, FileFormat
from laketier_localfile.layout import IN_PROGRESS, STAGED_SUFFIX, attempt_of_staged, base_name, staged_path
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.stretch import Stretch

_AT_ONCE = 64 << 20
_NO_RANGES = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF)


def without_growing(results: Sequence[WriteResult]) -> list[WriteResult]:
    """The results without files that stay open across epochs, or did."""
    return [replace(each, files=tuple(f for f in each.files if growth_of(f) is None)) for each in results]


def recorded(state: ManifestState, file: StagedFile) -> FileEntry | None:
    """What the table knows of the open file that ``file`` continues. None where it is not open there."""
    return next((entry for entry in state.head.open_files if staged_path(entry.path) == file.path), None)


def check_growing(location: Path, state: ManifestState, results: Sequence[WriteResult]) -> None:
    """The last look at files that stay open, or did. Raises `Overtaken` where the table knows another length than
    the one that rows were appended behind, and `StagedFileLost` for a file that is shorter than it should be."""
    folder = LocalFolder(location)
    seen: set[str] = set()
    for result in results:
        for file in result.files:
            growth = growth_of(file)
            if growth is None:
                continue
            if file.path in seen:
                raise _lost(location, file, "two tasks name it")
            seen.add(file.path)
            before = recorded(state, file)
            if growth.continues:
                _check_continued(location, state, file, growth, before)
            elif before is not None or attempt_of_staged(file.path) != result.attempt:
                raise _lost(location, file, "another attempt staged it")
            status = folder.status(file.path)
            size = growth.upto if growth.is_open else growth.bytes + file.bytes
            if status is None or status.st_size < size:
                found = "is gone" if status is None else f"has {status.st_size:,} bytes instead of {size:,}"
                raise _lost(location, file, f"it {found}")


def _check_continued(
    location: Path, state: ManifestState, file: StagedFile, growth: Growth, before: FileEntry | None
) -> None:
    where = str(location / file.path)
    if before is None or (before.bytes, before.rows) != (growth.bytes, growth.rows):
        raise Overtaken(
            "another commit finished, or continued, a file that this round appended to",
            where=where,
            why="it is not open any more"
            if before is None
            else f"the table knows {before.bytes:,} bytes of it, and rows were appended behind {growth.bytes:,}",
            fix="Nothing was published. Run the round again: it begins another file.",
        )
    if before.schema != state.head.metadata_at:
        raise Overtaken(
            "the table's columns changed while rows were appended to an open file",
            where=where,
            fix="Nothing was published. Run the round again: it begins another file.",
        )
    if before.partition != tuple(file.partition) or before.bucket != file.bucket:
        raise _lost(location, file, "it is of another partition or bucket")


def check_open(location: Path, entries: Iterable[FileEntry]) -> None:
    """Raise `CorruptTable` where what was recorded of an open file is not there."""
    folder = LocalFolder(location)
    for entry in entries:
        status = folder.status(staged_path(entry.path))
        if status is None or status.st_size < entry.bytes:
            lost = "is lost" if status is None else f"has {status.st_size:,} bytes, and {entry.bytes:,} were recorded"
            raise CorruptTable(
                f"an open data file with {entry.rows:,} rows {lost}",
                where=str(location / staged_path(entry.path)),
                why="something deleted or cut it: rows that were acknowledged are gone",
                fix="Restore it from a backup under this name, at least that long. What follows is not read.",
            )


def finish_open(
    location: Path, entry: FileEntry, schema: pa.Schema, file_format: FileFormat, options: LocalFileOptions
) -> StagedFile:
    """See `laketier.kit.manifests.ManifestTable.finish_open`. ``schema``: of the file."""
    growth = entry.growth
    assert growth is not None
    folder = LocalFolder(location)
    suffix = next(end for end in file_format.suffixes if entry.path.endswith(end))
    staged = staged_path(base_name(0, entry.bucket, new_attempt_id(), 0, suffix))
    folder.refuse_links(staged)
    target = location / staged
    source = folder.open(staged_path(entry.path))
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        described = _finished(source, target, entry, schema, file_format, options)
        failpoint("recover.before_sync")
        fsync_file(target)
        fsync_directory(target.parent)
        size = target.stat().st_size
        with pa.OSFile(str(target)) as data:
            seal = file_format.seal(data, size)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    finally:
        os.close(source)
    return StagedFile(
        path=f"{IN_PROGRESS}/{target.name}",
        rows=entry.rows,
        bytes=size,
        partition=entry.partition,
        bucket=entry.bucket,
        payload=claim(format_of(entry.details), described, seal),
    )


def _finished(
    source: int, target: Path, entry: FileEntry, schema: pa.Schema, file_format: FileFormat, options: LocalFileOptions
) -> Described:
    """Write the file, after a look at what was recorded: a finished file tells nobody that its bytes were others."""
    with os.fdopen(os.dup(source), "rb") as data:
        file = pa.PythonFile(data, "r")
        stretch = Stretch(0, entry.bytes)
        digest = str(entry.details["digest"])
        if not file_format.check(stretch.bytes_of(file), entry.bytes, digest):
            raise CorruptTable(
                "an open data file is not as it was recorded",
                where=str(target.parent / f"{Path(entry.path).name}{STAGED_SUFFIX}"),
                why=f"the digest of its first {entry.bytes:,} bytes is another one",
                fix="Nothing was published. Restore these bytes from a backup under this name; others may follow them.",
            )
        with pa.OSFile(str(target), "wb") as stream:
            described = file_format.end(stretch.rows_of(file), stream, schema, options)
    if described is not None:
        return described
    copy_bytes(source, target, entry.bytes)
    return Described(digest, entry.details["stats"])


def copy_bytes(source: int, target: Path, size: int) -> None:
    """Write the first ``size`` bytes of ``source`` into the empty file ``target``: as a shared extent where the file
    system has these, else within the kernel, else by hand."""
    there = os.open(target, os.O_WRONLY)
    try:
        done = 0
        try:
            while done < size:
                count = os.copy_file_range(source, there, min(size - done, _AT_ONCE), done, done)
                if not count:
                    break
                done += count
        except OSError as error:
            if error.errno not in _NO_RANGES:
                raise
        while done < size:
            data = os.pread(source, min(size - done, 1 << 20), done)
            if not data:
                raise CorruptTable(f"the file has {done:,} bytes, and {size:,} were recorded")
            done += os.pwrite(there, data, done)
    finally:
        os.close(there)


def _lost(location: Path, file: StagedFile, why: str) -> StagedFileLost:
    return StagedFileLost(
        "an open file is not as its writer left it; nothing was published",
        where=str(location / file.path),
        why=why,
        fix="Run the round again: it begins another file.",
    )
