"""A table's folder in S3: names are taken by conditional put, and nothing else of the protocol is asked of the store.

**Outcomes.** A put may land and its answer be lost; a second one is then refused because of the first. So a conditional
put is sent by a client that never asks again by itself, and whatever it answers, what lies under the name then decides:
our own bytes, as each document of the protocol holds an id that no other has; another's, and then it is certain that
ours never lands, as names are not given back; or nothing, and then it is sent again, and after some times the outcome
is told as unknown.

The store has to be strongly consistent, as S3 is: what was written is read and listed at once.
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from laketier.kit.confine import confined, escapes
from laketier.kit.failpoints import failpoint
from laketier.kit.local_folder import FoundFile
from laketier.kit.local_store import refuse_found
from laketier.kit.table_store import TableStore, Warehouse
from laketier.spi import ConfigError, FeatureNotSupported, IncompatibleTable, Passthrough, StorageError
from laketier_localfile.features import IDENTIFIER
from laketier_localfile.layout import MANIFESTS
from laketier_localfile.s3.client import Client, client_of, library
from laketier_localfile.s3.data import Kept, RangeFile, Upload
from laketier_localfile.s3.errors import is_final, naming, translated
from laketier_localfile.s3.proof import prove

AT_ONCE = 16
"""Requests of one process that do not depend on each other."""
_WAITS = (0.1, 0.5, 2.0)
"""Seconds before a put of unknown outcome is sent again."""
_DELETED_AT_ONCE = 1000
_LISTED_AT_ONCE = 1000
_FETCHED = 8 << 20
_CLOCK = "__in_progress/.clock-"
_PROBE = f"{MANIFESTS}/.probe-"

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Listed:
    """An object of a listing. ``path``: relative to the table. ``modified_at``: ms since the epoch."""

    path: str
    bytes: int
    modified_at: int
    tag: str

    @classmethod
    def of(cls, found: Mapping[str, Any], cut: int) -> Listed:
        """What the library says of it, without the first ``cut`` characters of its key."""
        moment = int(found["last_modified"].timestamp() * 1000)
        return cls(found["path"][cut:], found["size"], moment, found["e_tag"] or "")

    @property
    def identity(self) -> tuple[int, int, str]:
        """What tells it from another one of its name."""
        return self.bytes, self.modified_at, self.tag


@dataclass(frozen=True)
class S3Store(TableStore):
    """A `TableStore`. ``prefix``: the key of the table's folder, without a slash at its end. Its repr shows no
    secret."""

    bucket: str
    prefix: str
    storage: Passthrough

    may_land_late: ClassVar[bool] = True
    needs_no_folder: ClassVar[bool] = True
    may_take_twice: ClassVar[bool] = True

    @property
    def root(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def where(self, path: str) -> str:
        return f"{self.root}/{path}".rstrip("/")

    # -- documents --------------------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        with naming("reading a document of the table", self.where(path)):
            return bytes(library().get(self._client.store, self._key(path)).bytes())

    def exists(self, path: str) -> bool:
        return self._head(path) is not None

    def prove(self) -> None:
        """Find out whether the store refuses names that are taken, once in each process. Raises `UnsafeTable` where it
        does not, and `StorageError`."""
        prove(self._client, lambda: self._key(f"{_PROBE}{uuid.uuid4().hex}.tmp"), self.root)

    def distrust(self) -> None:
        self._client.trust.holds = False

    def create(self, path: str, data: bytes) -> None:
        self.prove()
        key, where = self._key(path), self.where(path)
        for wait in (*_WAITS, None):
            try:
                library().put(self._client.once, key, data, mode="create")
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, what lies there tells
                failure = error
            try:
                there = self.read(path)
            except FileNotFoundError:
                there = None
            if there == data:
                return
            if there is not None:
                raise FileExistsError(f"another document is there: {where}")
            if wait is None or is_final(failure):
                raise translated(failure, "publishing a document of the table", where) from None
            time.sleep(wait)

    def replace(self, path: str, data: bytes) -> None:
        with naming("writing a document of the table", self.where(path)):
            library().put(self._client.store, self._key(path), data, use_multipart=False)

    def identity(self, path: str) -> str | None:
        try:
            found = self._head(path)
        except StorageError:
            return None
        if found is None:
            return None
        moment = int(found["last_modified"].timestamp() * 1000)
        tag = (found["e_tag"] or "").strip('"').replace("/", "_")
        return f"{found['size']:x}.{moment:x}.{tag}"

    def names(self, folder: str) -> list[str]:
        objects, _ = self.directly_in(folder)
        return objects

    def directly_in(self, folder: str) -> tuple[list[str], list[str]]:
        """The names of objects and those of folders in a folder, but not of what lies below these. Raises
        `StorageError`."""
        start = self._key(folder) if folder else self.prefix
        return _listed(self._client, start, self.where(folder))

    # -- data files -------------------------------------------------------------------------------------------------

    def files(self, folder: str = "") -> Iterator[FoundFile]:
        for found in self.objects(folder):
            if escapes(found.path) is None:
                yield FoundFile(found.path, found.bytes, found.modified_at, found.modified_at)

    def objects(self, folder: str = "") -> Iterator[Listed]:
        """All objects below a folder, also those that can't be files of a table. Raises `StorageError`."""
        for page in self.pages(folder):
            yield from page

    def pages(self, folder: str = "") -> Iterator[list[Listed]]:
        """The same, as the store gives them: up to a thousand by one request."""
        cut = len(self.prefix) + 1 if self.prefix else 0
        start = self._key(folder) if folder else self.prefix
        with naming("listing the table's files", self.where(folder)):
            for chunk in library().list(self._client.store, start or None, chunk_size=_LISTED_AT_ONCE):
                # Of a key that ends with a slash, as some tools make for folders, the library cuts that off.
                yield [each for each in (Listed.of(found, cut) for found in chunk) if each.path]

    def sizes(self, paths: Sequence[str]) -> Mapping[str, int | None]:
        found = self.at_once(self._head, paths)
        return {path: None if head is None else int(head["size"]) for path, head in zip(paths, found, strict=True)}

    def delete(self, path: str) -> bool:
        self.delete_all([path])
        return True

    def delete_all(self, paths: Sequence[str]) -> None:
        """Delete files, whether they are there or not; up to a thousand by one request."""
        keys = [self._key(path) for path in paths]
        for start in range(0, len(keys), _DELETED_AT_ONCE):
            with naming("deleting files of the table", self.root):
                library().delete(self._client.store, keys[start : start + _DELETED_AT_ONCE])

    def copy(self, source: str, target: str) -> bool:
        """Copy a file within the store. False when there is no ``source``."""
        try:
            with naming("copying a file of the table", self.where(target)):
                library().copy(self._client.store, self._key(source), self._key(target))
        except FileNotFoundError:
            return False
        return True

    def upload(self, path: str) -> Upload:
        """Begin a data file."""
        return Upload(self._client, self._key(path), self.where(path))

    def open(self, *places: str, kept: Kept | None = None) -> pa.NativeFile:
        """Open the data file that is in one of ``places``, for reading. Raises `FileNotFoundError`."""
        keys = [self._key(place) for place in places]
        return pa.PythonFile(RangeFile(self._client, keys, self.where(places[0]), kept), "r")

    def fetch(self, *places: str) -> pa.NativeFile:
        """As `open`, of a copy in a temporary file, for what reads a file more than once from end to end."""
        with self.open(*places) as found:
            size = found.size()
            copy = tempfile.TemporaryFile(prefix="laketier-s3-")  # noqa: SIM115 - the reader closes it
            for start in range(0, size, _FETCHED):
                found.seek(start)
                copy.write(found.read(_FETCHED))
        copy.seek(0)
        return pa.PythonFile(copy, "r")

    def now(self) -> int:
        path = f"{_CLOCK}{uuid.uuid4().hex}"
        self.replace(path, b"")
        found = self._head(path)
        self.delete(path)
        if found is None:
            raise StorageError("the store does not tell its time", where=self.root, why="the file it dates is gone")
        return int(found["last_modified"].timestamp() * 1000)

    # -- the folder itself ------------------------------------------------------------------------------------------

    def make(self) -> None:
        """There are no folders."""

    def make_folders(self, *paths: str) -> None:
        """There are no folders."""

    def sync(self, folder: str) -> None:
        """What was answered is durable."""

    def refuse_links(self, path: str) -> None:
        """There are no links."""
        if path:
            confined(path, where=self.root)

    def remove_below(self, folder: str) -> None:
        try:
            self.delete_all([file.path for file in self.files(folder)])
        except StorageError:
            return  # orphan collection finds it

    def refuse_others(self, own: frozenset[str]) -> None:
        objects, folders = self.directly_in("")
        refuse_found(sorted({*objects, *folders} - own), where=self.root)

    def drop(self, sign: str, table_file: str) -> None:
        """The table is gone once ``table_file`` is. Only what was listed before is deleted: a new table may be made in
        its place while its files still go, and names are never used again."""
        before = self.read(table_file)
        listed = self._listed_alone(sign)
        if self.read(table_file) != before:
            raise FileNotFoundError(f"{self.where(table_file)} is another table's by now")
        self.delete(table_file)
        failpoint("drop.after_rename")
        heads = [path for path in listed if path.endswith("/head.json")]
        self.delete_all(heads)  # a writer that has yet to look at it knows by this that the table is gone
        self.delete_all([path for path in listed if path not in {table_file, *heads}])

    def delete_rest(self, sign: str, table_file: str) -> None:
        """End a drop that was cut off after ``table_file`` was gone. Raises as `drop`."""
        listed = self._listed_alone(sign)
        if self.exists(table_file):
            raise FileNotFoundError(f"{self.where(table_file)} is another table's by now")
        self.delete_all(listed)

    def _listed_alone(self, sign: str) -> list[str]:
        listed = [file.path for file in self.files()]
        other = next((path for path in listed if f"/{sign}/" in path), None)
        if other is not None:
            raise IncompatibleTable(
                "another table is inside of the table's folder; nothing was deleted",
                where=self.where(other.partition(f"/{sign}/")[0]),
                why="dropping the table deletes its whole folder",
                fix="Move the other table elsewhere, or drop it first.",
            )
        return listed

    def all_of(self, asks: Sequence[Callable[[], T]]) -> list[T]:
        return self.at_once(lambda ask: ask(), asks)

    def at_once(self, ask: Callable[[T], R], each: Sequence[T]) -> list[R]:
        """Requests that do not depend on each other."""
        if len(each) < 2:
            return [ask(one) for one in each]
        with ThreadPoolExecutor(min(AT_ONCE, len(each)), thread_name_prefix="laketier-s3") as pool:
            return list(pool.map(ask, each))

    @property
    def _client(self) -> Client:
        return client_of(self.bucket, self.storage)

    def _key(self, path: str) -> str:
        return "/".join(filter(None, (self.prefix, confined(path, where=self.root))))

    def _head(self, path: str) -> Any:
        try:
            with naming("looking for a file of the table", self.where(path)):
                return library().head(self._client.store, self._key(path))
        except FileNotFoundError:
            return None


@dataclass(frozen=True)
class S3Warehouse(Warehouse):
    """``prefix``: without slashes at its ends; empty for a whole bucket."""

    bucket: str
    prefix: str
    storage: Passthrough

    @classmethod
    def of(cls, warehouse: str, storage: Passthrough) -> S3Warehouse:
        """Read ``lake.warehouse``: ``s3://bucket/prefix``, or ``s3a:`` as Hadoop says. Asks the store nothing. Raises
        `ConfigError` and `FeatureNotSupported`."""
        scheme, _, rest = warehouse.partition("://")
        if scheme not in ("s3", "s3a"):
            raise FeatureNotSupported(
                f"tables on {scheme}://",
                format=IDENTIFIER,
                reason="its atomic step was tried on S3 alone",
                fix="Use s3://, a path or a file:// URI, or another format.",
            )
        bucket, _, prefix = rest.partition("/")
        prefix = prefix.strip("/")
        why = None if not prefix else escapes(prefix)
        if not bucket or "@" in bucket:
            raise ConfigError(
                "lake.warehouse names no bucket", why="it begins with s3://", fix="Write s3://bucket/prefix."
            )
        if why is not None or any(mark in rest for mark in "?#"):
            raise ConfigError(
                f"the warehouse {warehouse!r} has a prefix that can't hold tables",
                why=why or "readers take what follows ? or # for something else",
                fix="Write s3://bucket/prefix.",
            )
        library()
        return cls(bucket, prefix, storage)

    @classmethod
    def table_at(cls, location: str, storage: Passthrough) -> S3Store:
        """The store of `TableInfo.location`."""
        bucket, _, prefix = location.removeprefix("s3://").partition("/")
        return S3Store(bucket, prefix, storage)

    def table(self, database: str, table: str) -> S3Store:
        return S3Store(self.bucket, "/".join(filter(None, (self.prefix, database, table))), self.storage)

    def tables(self, table_file: str, database: str | None = None) -> Iterator[tuple[str, str]]:
        client, where = client_of(self.bucket, self.storage), f"s3://{self.bucket}/{self.prefix}"
        databases = [database] if database is not None else _listed(client, self.prefix, where)[1]
        for name in databases:
            _, tables = _listed(client, "/".join(filter(None, (self.prefix, name))), where)
            stores = [self.table(name, table) for table in tables]
            if stores:
                found = stores[0].at_once(lambda store: store.exists(table_file), stores)
                yield from ((name, table) for table, there in zip(tables, found, strict=True) if there)


def _listed(client: Client, prefix: str, where: str) -> tuple[list[str], list[str]]:
    """Names of the objects and of the folders directly below ``prefix``."""
    with naming("listing", where):
        found = library().list_with_delimiter(client.store, prefix or None)
    cut = len(prefix) + 1 if prefix else 0
    names = [each["path"][cut:] for each in found["objects"]]
    # Some tools make a key with a slash at its end for a folder, and the library cuts that off.
    return [name for name in names if name], [each[cut:] for each in found["common_prefixes"]]
