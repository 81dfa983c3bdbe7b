"""Watermark records, for formats with commits that can hold only a number.

The watermark is written to an immutable, content-addressed file, durable before the commit; the commit stores a
63-bit pointer to it. A record without a commit that points at it is an orphan, and harmless.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote

import pyarrow.fs as pafs

from laketier.kit.confine import RECORDS
from laketier.kit.durable import create_exclusively
from laketier.kit.local_folder import LocalFolder
from laketier.kit.table_folder import TableFolder
from laketier.spi.errors import CorruptTable
from laketier.spi.maintenance import OrphanFile
from laketier.spi.token import Watermark

_RECORD = re.compile(r"[0-9a-f]{16}\.json")
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.json\.[0-9a-f]{32}\.tmp")

_LONGEST = 255
"""Bytes in the name of a folder, on the file systems that there are."""
_HASHED, _SHOWN, _CUT_ESCAPE = "+", 120, re.compile("%.?$")


def record_pointer(watermark: Watermark) -> int:
    """63 bits of the SHA-256 of the watermark's canonical JSON; never negative."""
    return _pointer_of(watermark.to_json().encode())


def _pointer_of(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big") >> 1


class RecordStore:
    """Watermarks below ``<root>/_laketier/<pipeline>/``. ``root`` is a path on ``filesystem``. Driver only."""

    def __init__(self, filesystem: pafs.FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")

    def put(self, watermark: Watermark) -> int:
        """Store a watermark durably and return its pointer. Idempotent."""
        pointer = record_pointer(watermark)
        path = self._path(watermark.token.pipeline, pointer)
        data = watermark.to_json().encode()
        if isinstance(self._filesystem, pafs.LocalFileSystem):
            self._refuse_links(path)
            LocalFolder(Path(self._root)).make_folders(f"{RECORDS}/{_folder(watermark.token.pipeline)}")
            try:
                create_exclusively(Path(path), data)
            except FileExistsError:
                self.get(watermark.token.pipeline, pointer)
        else:
            with self._filesystem.open_output_stream(path) as stream:
                stream.write(data)
        return pointer

    def get(self, pipeline: str, pointer: int) -> Watermark:
        """Read a record. Raises `CorruptTable` when it is missing, damaged, does not match the pointer, or has more to
        say than this laketier understands."""
        path = self._path(pipeline, pointer)
        self._refuse_links(path)
        try:
            data = self._bytes(path)
            watermark = Watermark.from_json(data)
        except FileNotFoundError as error:
            raise CorruptTable(
                f"the table points at watermark record {path}, and it is missing",
                why=f"something deleted files below {RECORDS}/",
                fix="Restore the file from a backup, or run `laketier pipeline adopt` after checking what is in the "
                "table.",
            ) from error
        if record_pointer(watermark) != pointer and _pointer_of(data) == pointer:
            raise CorruptTable(
                f"watermark record {path} says more than this laketier understands",
                why="a newer one wrote it",
                fix="Use that laketier, or a newer one, in all processes that write to the table. Nothing is damaged.",
            )
        if record_pointer(watermark) != pointer or watermark.token.pipeline != pipeline:
            raise CorruptTable(f"watermark record {path} was changed after it was written")
        return watermark

    def of(self, pipeline: str) -> Iterator[Watermark]:
        """Read the records of a pipeline, those that were stored last first: of rounds that landed, and of attempts
        that never did. Raises `CorruptTable` for one that can't be read."""
        folder = _folder(pipeline)
        files = [
            file
            for file in TableFolder(self._filesystem, self._root).files(f"{RECORDS}/{folder}")
            if _RECORD.fullmatch(file.path.rpartition("/")[2])
        ]
        for file in sorted(files, key=lambda file: file.modified_at, reverse=True):
            with suppress(FileNotFoundError):  # collected meanwhile
                watermark = self._read(f"{self._root}/{file.path}")
                if watermark.token.pipeline == pipeline:
                    yield watermark

    def orphans(self, current: Callable[[str], int | None], modified_before: int) -> list[OrphanFile]:
        """List orphans for `LakeMaintenance.orphans`: unreferenced records older than ``modified_before``, and
        remains of a killed `put`. ``current`` returns the pointer of a pipeline in the newest state of the table. If
        it returns None, no record of that pipeline is needed."""
        found: list[OrphanFile] = []
        for pipeline, files in self._by_pipeline().items():
            old = [file for file in files if file.modified_at < modified_before]
            found += _unneeded(files, old, current(pipeline))
        return found

    def pipelines(self) -> list[str]:
        """List the pipelines that ever had a record here."""
        return list(self._by_pipeline())

    def _by_pipeline(self) -> dict[str, list[OrphanFile]]:
        named = ((self._pipeline_of(folder, files), folder, files) for folder, files in self._by_folder().items())
        return {name: files for name, folder, files in named if name and folder == _folder(name)}

    def _pipeline_of(self, folder: str, files: list[OrphanFile]) -> str | None:
        """None where the name is too long for a folder, and no record is left that tells it."""
        if _HASHED not in folder:
            return unquote(folder)
        for file in files:
            with suppress(CorruptTable, FileNotFoundError):
                return self._read(f"{self._root}/{file.path}").token.pipeline
        return None

    def _read(self, path: str) -> Watermark:
        return Watermark.from_json(self._bytes(path))

    def _bytes(self, path: str) -> bytes:
        with self._filesystem.open_input_stream(path) as stream:
            return bytes(stream.read())

    def _by_folder(self) -> dict[str, list[OrphanFile]]:
        folders: dict[str, list[OrphanFile]] = {}
        for found in TableFolder(self._filesystem, self._root).files(RECORDS):
            folder, _, name = found.path[len(RECORDS) + 1 :].rpartition("/")
            if _RECORD.fullmatch(name) or _TEMPORARY.fullmatch(name):
                file = OrphanFile(found.path, found.bytes, found.modified_at, "record")
                folders.setdefault(folder, []).append(file)
        return folders

    def _refuse_links(self, path: str) -> None:
        if isinstance(self._filesystem, pafs.LocalFileSystem):
            LocalFolder(Path(self._root)).refuse_links(path[len(self._root) + 1 :])

    def _path(self, pipeline: str, pointer: int) -> str:
        return f"{self._root}/{RECORDS}/{_folder(pipeline)}/{pointer:016x}.json"


def _folder(pipeline: str) -> str:
    """The pipeline's name, escaped. One that is too long for a folder is cut, and its hash follows `_HASHED`, which no
    escaped name has."""
    name = quote(pipeline, safe="").replace(".", "%2E")
    if len(name) <= _LONGEST:
        return name
    begun = _CUT_ESCAPE.sub("", name[:_SHOWN])
    return f"{begun}{_HASHED}{hashlib.sha256(pipeline.encode()).hexdigest()}"


def _unneeded(files: list[OrphanFile], old: list[OrphanFile], pointer: int | None) -> list[OrphanFile]:
    """Which of the ``old`` among a pipeline's ``files`` nobody needs."""
    if pointer is None:
        return old
    current = next((file for file in files if file.path.endswith(f"/{pointer:016x}.json")), None)
    if current is None:
        return []  # the table is damaged: everything may help to mend it
    if current in old:
        return [file for file in old if file != current]
    # The one before may have been current a moment ago, so a state that was opened then still points at it.
    return sorted(old, key=lambda file: (file.path.endswith(".json"), file.modified_at))[:-1]
