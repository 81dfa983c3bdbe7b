"""Data files in the store: written as a multipart upload that can be given up, and read by ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laketier.spi import CorruptTable, StorageError
from laketier_localfile.s3.client import Client, library
from laketier_localfile.s3.errors import naming

PART_BYTES = 8 << 20
"""A smaller file is one put."""
PARTS_AT_ONCE = 4
KEPT = 1 << 20
"""So many bytes of a file's beginning and end are kept, or asked for at once: most footers are in them."""
_LONGEST_READ = 8 << 20


class Upload:
    """A file object for `pyarrow.PythonFile` that writes an object, and keeps its beginning and end, by which it is
    told from another one. One thread. Nothing is to be seen of it before `close`; `give_up` leaves nothing."""

    def __init__(self, client: Client, key: str, where: str) -> None:
        self._where = where
        self._file = library().open_writer(client.store, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
        self._written = 0
        self._start = bytearray()
        self._end = bytearray()
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        with naming("writing a data file", self._where):
            self._file.write(view)
        self._written += len(view)
        if len(self._start) < KEPT:
            self._start += view[: KEPT - len(self._start)]
        self._end += view[-KEPT:]
        if len(self._end) > 2 * KEPT:
            del self._end[:-KEPT]
        return len(view)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        """A part is sent when it is full."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            with naming("writing a data file", self._where):
                self._file.close()

    def give_up(self) -> None:
        """Abort the upload. After `close`, nothing."""
        if not self.closed:
            self.closed = True
            with naming("giving up a data file", self._where):
                self._file.__exit__(RuntimeError, RuntimeError("given up"), None)

    def kept(self) -> Kept:
        """What is known of the object's bytes without asking for them."""
        end = bytes(self._end[-KEPT:])
        return Kept(self._written, {0: bytes(self._start), self._written - len(end): end})


class Kept:
    """Pieces of an object, by where they begin, and its size."""

    def __init__(self, size: int, pieces: dict[int, bytes]) -> None:
        self.size = size
        self._pieces = pieces

    def get(self, start: int, length: int) -> bytes | None:
        """The bytes, if they are all there."""
        for begin, piece in self._pieces.items():
            if begin <= start and start + length <= begin + len(piece):
                return piece[start - begin : start - begin + length]
        return None

    def keep(self, start: int, piece: bytes) -> None:
        """Keep this piece, too, in the place of what was kept but for the file's end."""
        end = {begin: old for begin, old in self._pieces.items() if begin + len(old) == self.size}
        self._pieces = {**end, start: piece}


class RangeFile:
    """A file object for `pyarrow.PythonFile` that reads an object by ranges. One thread. ``places``: the keys where the
    object may be, in the order in which it moves; it is looked for in the next one when it is gone from one. A larger
    piece is asked for the longer reads follow on each other."""

    closed = False

    def __init__(self, client: Client, places: Sequence[str], where: str, kept: Kept | None = None) -> None:
        """Raises `FileNotFoundError`. One request, unless ``kept`` tells what it would."""
        self._client = client
        self._places = list(places)
        self._where = where
        self._at = 0
        self._follows = -1
        self._reads = KEPT
        self._kept = kept if kept is not None else self._asked_for_end()

    def size(self) -> int:
        return self._kept.size

    def tell(self) -> int:
        return self._at

    def seek(self, place: int, whence: int = 0) -> int:
        self._at = place + (0, self._at, self._kept.size)[whence]
        return self._at

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """There is nothing to be closed."""
        self.closed = True

    def read(self, size: int | None = None) -> bytes:
        length = max(0, self._kept.size - self._at)
        if size is not None and size >= 0:
            length = min(length, size)
        if length == 0:
            return b""
        found = self._kept.get(self._at, length)
        if found is None:
            found = self._fetched(self._at, length)
        self._at += length
        self._follows = self._at
        return found

    def _fetched(self, start: int, length: int) -> bytes:
        self._reads = min(self._reads * 2, _LONGEST_READ) if start == self._follows else KEPT
        end = min(start + max(length, self._reads), self._kept.size)
        _, piece = self._get({"range": (start, end)})
        if len(piece) != end - start:
            raise CorruptTable(f"the file has other bytes than when it was opened: {len(piece)} for {end - start}")
        if len(piece) > length:
            self._kept.keep(start, piece)
        return piece[:length]

    def _asked_for_end(self) -> Kept:
        try:
            size, data = self._get({"range": {"suffix": KEPT}})
        except StorageError:
            # An object without bytes has no range. What the store says of that look says less than the first answer.
            try:
                empty = not library().head(self._client.store, self._places[0])["size"]
            except Exception:  # noqa: BLE001 - whatever the library raises
                empty = False
            if not empty:
                raise
            return Kept(0, {})
        return Kept(size, {size - len(data): data})

    def _get(self, options: dict[str, Any]) -> tuple[int, bytes]:
        for left in range(len(self._places) - 1, -1, -1):
            try:
                with naming("reading a data file", self._where):
                    found = library().get(self._client.store, self._places[0], options=options)
                    return int(found.meta["size"]), bytes(found.bytes())
            except FileNotFoundError:
                if not left:
                    raise
                self._places.append(self._places.pop(0))
        raise AssertionError("unreachable")
