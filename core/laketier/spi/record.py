"""The record helper: for formats whose commit can hold only a number.

The watermark is written to an immutable, content-addressed file, durable before the commit; the commit stores a
63-bit pointer to it. A record that no commit points at is an orphan and harmless.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import quote

import pyarrow.fs as pafs

from laketier.spi.durable import create_exclusively, make_directories
from laketier.spi.errors import CorruptTable
from laketier.spi.token import Watermark

RECORDS = "_laketier"
"""The folder below the table's location. Readers and cleaners of all formats leave ``_`` folders alone."""


def record_pointer(watermark: Watermark) -> int:
    """63 bits of the SHA-256 of the watermark's canonical JSON; never negative."""
    return int.from_bytes(hashlib.sha256(watermark.to_json().encode()).digest()[:8], "big") >> 1


class RecordStore:
    """Watermarks below ``<root>/_laketier/<pipeline>/``. ``root`` is a path on ``filesystem``. Driver only."""

    def __init__(self, filesystem: pafs.FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")

    def put(self, watermark: Watermark) -> int:
        """Store it durably and return the pointer. Idempotent."""
        pointer = record_pointer(watermark)
        path = self._path(watermark.token.pipeline, pointer)
        data = watermark.to_json().encode()
        if isinstance(self._filesystem, pafs.LocalFileSystem):
            make_directories(Path(path).parent)
            try:
                create_exclusively(Path(path), data)
            except FileExistsError:
                self.get(watermark.token.pipeline, pointer)
        else:
            with self._filesystem.open_output_stream(path) as stream:
                stream.write(data)
        return pointer

    def get(self, pipeline: str, pointer: int) -> Watermark:
        """Read a record. Raises `CorruptTable` when it is missing, damaged, or not what the pointer says."""
        path = self._path(pipeline, pointer)
        try:
            with self._filesystem.open_input_stream(path) as stream:
                watermark = Watermark.from_json(stream.read())
        except FileNotFoundError as error:
            raise CorruptTable(
                f"the table points at watermark record {path}, and it is missing",
                why=f"something deleted files below {RECORDS}/",
                fix="Restore the file from a backup, or run `laketier pipeline adopt` after checking what is in the "
                "table.",
            ) from error
        if record_pointer(watermark) != pointer or watermark.token.pipeline != pipeline:
            raise CorruptTable(f"watermark record {path} was changed after it was written")
        return watermark

    def _path(self, pipeline: str, pointer: int) -> str:
        folder = quote(pipeline, safe="").replace(".", "%2E")
        return f"{self._root}/{RECORDS}/{folder}/{pointer:016x}.json"
