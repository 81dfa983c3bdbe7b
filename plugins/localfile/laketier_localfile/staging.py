"""Where a task attempt writes its data files before they are published: on a disk, or in S3."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from laketier.kit import LocalFolder
from laketier.kit.access import access
from laketier.kit.durable import fsync_directory, fsync_file
from laketier.kit.table_store import TableStore
from laketier.spi import StorageError
from laketier_localfile.layout import IN_PROGRESS
from laketier_localfile.place import in_s3

if TYPE_CHECKING:
    from laketier_localfile.s3.data import Upload
    from laketier_localfile.s3.store import S3Store


class Staging(Protocol):
    """The staged files of one attempt. One thread. ``path`` is what `create` gave, and ends with the file's name."""

    def create(self, name: str) -> tuple[str, pa.NativeFile]:
        """Begin a file, given relative to the table, under a name that no other attempt chooses."""

    def closed(self, path: str) -> None:
        """The file was written to its end and closed. Make its bytes durable."""

    def complete(self) -> None:
        """All files were. Make their names durable."""

    def open(self, path: str) -> pa.NativeFile:
        """Look at a file that was closed."""

    def give_up(self) -> None:
        """Nothing more is written to open files: closing them leaves nothing."""

    def delete(self, path: str) -> None:
        """Delete a file, if it is there."""


def staging_at(store: TableStore) -> Staging:
    """The staging of the table at ``store``."""
    bucket = in_s3(store)
    if bucket is not None:
        return S3Staging(bucket)
    assert store.folder is not None
    return LocalStaging(store.folder)


class LocalStaging:
    """A `Staging`."""

    def __init__(self, location: Path) -> None:
        self._location = location

    def create(self, name: str) -> tuple[str, pa.NativeFile]:
        LocalFolder(self._location).refuse_links(name)
        path = str(self._location / name)
        with access("staging a file", where=path):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        return path, pa.OSFile(path, "wb")

    def closed(self, path: str) -> None:
        fsync_file(path)

    def complete(self) -> None:
        fsync_directory(self._location / IN_PROGRESS)

    def open(self, path: str) -> pa.NativeFile:
        return pa.OSFile(path)

    def give_up(self) -> None:
        """Who deletes them comes next."""

    def delete(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)


class S3Staging:
    """A `Staging`. An upload is to be seen once it is closed."""

    def __init__(self, store: S3Store) -> None:
        self._store = store
        self._uploads: dict[str, Upload] = {}

    def create(self, name: str) -> tuple[str, pa.NativeFile]:
        upload = self._uploads[name] = self._store.upload(name)
        return name, pa.PythonFile(upload, "w")

    def closed(self, path: str) -> None:
        """The store's answer says that it is durable."""

    def complete(self) -> None:
        """Names are durable with their objects."""

    def open(self, path: str) -> pa.NativeFile:
        return self._store.open(path, kept=self._uploads[path].kept())

    def give_up(self) -> None:
        for upload in self._uploads.values():
            with suppress(StorageError):  # the store may be why the attempt ends; what is left of it has no name
                upload.give_up()

    def delete(self, path: str) -> None:
        with suppress(StorageError):  # orphan collection finds it
            self._store.delete(path)
