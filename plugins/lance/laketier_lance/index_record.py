"""What a task leaves beside a finished segment, so that the next build finds it where the driver of this one died.

One small file in the segment's own folder, written once all others are on the device. It goes with the segment when
that is collected as an orphan, and is deleted once the segment is published. Nothing in it is trusted: a segment is
taken over only if all that it says of itself is what a build would do now, and its files are those that were written.
"""

from __future__ import annotations

import hashlib
import logging
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version

from laketier.kit import LocalFolder
from laketier.kit.durable import create_exclusively
from laketier.spi import BuiltIndexPart, DataclassSerializer, LaketierError, OutsideTable, SerializationError
from laketier_lance.index_folders import INDICES, SEGMENT_FILE, SEGMENT_ID
from laketier_lance.index_results import BuiltSegment
from laketier_lance.location import local_path

log = logging.getLogger(__name__)

RECORD = "laketier-part.json"
_MOST = 64 * 1024**2
"""A part of a million fragments has less to say."""


@dataclass(frozen=True)
class PartRecord:
    """A finished part that nobody published, as its record tells it.

    Attributes:
        built: What its task said of it.
        name: The index.
        digests: The SHA-256 of each file of the segment.
        lance: The version of pylance that built it.
    """

    built: BuiltIndexPart
    name: str
    digests: Mapping[str, str]
    lance: str


_RECORDS = DataclassSerializer(PartRecord)


def write_record(location: str, name: str, built: BuiltIndexPart) -> None:
    """Write the record of a segment whose files are on the device. Nothing in an object store. Executor."""
    local = local_path(location)
    if local is None:
        return
    folder = f"{INDICES}/{built.segment}"
    digests = {path: _digest(LocalFolder(local), f"{folder}/{path}") for path, _ in _files(built)}
    record = PartRecord(built, name, digests, version("pylance"))
    create_exclusively(local / folder / RECORD, _RECORDS.serialize(record))


def records(location: str) -> Iterator[PartRecord]:
    """The records that are there, in no order. Those that can't be read, or that another version of Lance or of this
    module wrote, are left out and logged."""
    local = local_path(location)
    if local is None:
        return
    folder = LocalFolder(local)
    for file in folder.files(INDICES):
        parts = file.path.split("/")
        if len(parts) == 3 and parts[2] == RECORD and SEGMENT_ID.fullmatch(parts[1]):
            try:
                yield _read(folder, file.path, parts[1])
            except (OSError, LaketierError) as error:
                log.info("%s: %s is no record of a part that can be taken over: %r", location, file.path, error)


def taken_over(location: str, record: PartRecord) -> BuiltIndexPart | None:
    """Take over a part: its files get a second name in a folder of their own, and a record there. Driver.

    Orphan collection may be about to delete the first name, and a driver that only seems dead may publish it. Neither
    matters: what is published has a name that no listing has had, and the age of now.

    Returns:
        The part under its new id. None where its files are not those that were written, or can't be linked.
    """
    local = local_path(location)
    if local is None:
        return None
    folder, segment = LocalFolder(local), str(uuid.uuid4())
    old, new = f"{INDICES}/{record.built.segment}", f"{INDICES}/{segment}"
    taken = replace(record.built, segment=segment)
    try:
        folder.make_folders(new)
        for path, size in _files(record.built):
            _touch(folder, f"{old}/{path}")  # before it has the new name: under that it must not look old
            folder.link(f"{old}/{path}", f"{new}/{path}")
            found = folder.status(f"{new}/{path}")
            if found is None or found.st_size != size or _digest(folder, f"{new}/{path}") != record.digests.get(path):
                raise OutsideTable(f"{path} is not the file that the task wrote")
        write_record(location, record.name, taken)  # which makes the names before it durable, too
    except (OSError, LaketierError) as error:
        log.warning("part %s of index %s is built again: %s", record.built.part.number, record.name, error)
        with suppress(OSError, OutsideTable):
            for file in list(folder.files(new)):
                folder.unlink(file.path)
            os.rmdir(local / new)
        return None
    return taken


def forget_records(location: str, segments: Iterable[str]) -> None:
    """Delete the records of segments that are published: nobody may build on them any more. Best effort, as what is
    left is an orphan."""
    local = local_path(location)
    if local is None:
        return
    for segment in segments:
        try:
            if SEGMENT_ID.fullmatch(segment):
                LocalFolder(local).unlink(f"{INDICES}/{segment}/{RECORD}")
        except (OSError, OutsideTable) as error:
            log.info("%s: the record of segment %s stays: %s", location, segment, error)


def _read(folder: LocalFolder, path: str, segment: str) -> PartRecord:
    with open(folder.open(path), "rb") as file:
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise SerializationError(f"it has more than {_MOST} bytes")
    record = _RECORDS.deserialize(_RECORDS.version, data)
    if record.lance != version("pylance"):
        raise SerializationError(f"it is of Lance {record.lance!r}")
    if record.built.segment != segment or record.built.rows != record.built.part.rows:
        raise SerializationError("it is of another segment, or of other rows")
    if {file for file, _ in _files(record.built)} != set(record.digests):
        raise SerializationError("its digests are of other files")
    return record


def _files(built: BuiltIndexPart) -> Sequence[tuple[str, int]]:
    """The files of a segment, as its result names them. Raises `SerializationError` for one that is no plain name."""
    files = BuiltSegment.read(built.payload).files
    for path, _ in files:
        if not SEGMENT_FILE.fullmatch(path) or path == RECORD:
            raise SerializationError(f"{path!r} is no file of a segment")
    return files


def _digest(folder: LocalFolder, path: str) -> str:
    with open(folder.open(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _touch(folder: LocalFolder, path: str) -> None:
    descriptor = folder.open(path)
    try:
        os.utime(descriptor)
    finally:
        os.close(descriptor)
