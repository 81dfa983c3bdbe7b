"""The ledger: which file has which ordinal, the same for every driver.

A folder of segments, each named by its first ordinal. The name of the next one follows from what is known, and it is
created exclusively: of two drivers that discover at once one wins, and the other reads what that one wrote. Nothing
is ever changed. So there is no state between "not taken" and "taken", wherever a driver is killed.

A ledger that is put back from a backup takes the files again that it lost, perhaps in another order. So what is in
memory is read anew once the disk does not bear it out, and `Ledger.stamp` tells one history from another.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from laketier.connectors.files.files import NO_FILES, Files
from laketier.connectors.files.history import History
from laketier.connectors.files.segment import VERSION, LedgerCheckpoint, Segment, check_version, damaged, digest_of
from laketier.kit import failpoint
from laketier.kit.durable import create_exclusively, fsync_directory, make_directories
from laketier.kit.looks import is_there, names_in
from laketier.spi import ConfigError, CorruptTable, TableNotFound

log = logging.getLogger(__name__)

_LEDGER_FILE = "ledger.json"
_SCHEMA_FILE = "schema.arrow"
_SEGMENTS = "segments"
_CHECKPOINTS = "checkpoints"
SEGMENTS_PER_CHECKPOINT = 256


class Ledger:
    """The ledger of one table, and what this process has read of it. Driver only. For many threads.

    Raises `CorruptTable` where a document is damaged or missing, and `TableNotFound` when the ledger was removed or
    recreated beneath it.
    """

    def __init__(self, folder: Path, ledger_id: str) -> None:
        self.folder = folder
        self.ledger_id = ledger_id
        self._lock = threading.RLock()
        self._begin()

    def _begin(self) -> None:
        """Know nothing of it yet."""
        self._files: list[Files] = [NO_FILES]
        self._count = 0
        self._head = self.ledger_id  # what the next segment gives as the one before
        self._last: int | None = None
        self._since_checkpoint = 0
        self._history = History()
        self.gone_before = 0
        """Files before this one are known not to be there any more."""

    @staticmethod
    def is_made(folder: Path) -> bool:
        """Whether there is one."""
        return is_there(folder / _LEDGER_FILE)

    @classmethod
    def open(cls, folder: Path, *, path: str, table: str) -> Ledger:
        """Open the ledger, or make it. Raises `ConfigError` when it belongs to another landing zone."""
        file = folder / _LEDGER_FILE
        if not cls.is_made(folder):
            make_directories(folder / _SEGMENTS)
            make_directories(folder / _CHECKPOINTS)
            failpoint("ledger.made_folders")
            made = {"version": VERSION, "id": str(uuid.uuid4()), "path": path, "table": table}
            with suppress(FileExistsError):
                create_exclusively(file, json.dumps(made, indent=1, ensure_ascii=False).encode())
        about = _about(file)
        if (about["path"], about["table"]) != (path, table):
            raise ConfigError(
                f"the ledger is that of the table {about['table']!r} of {about['path']}",
                where=str(file),
                fix=f"Give each landing zone its own ledger. If the zone was moved to {path}, say so in this file.",
            )
        return cls(folder, str(about["id"]))

    @property
    def files(self) -> Files:
        """The files taken so far, by ordinal."""
        with self._lock:
            if len(self._files) > 1:
                self._files = [Files.concat(self._files)]
            return self._files[0]

    def __len__(self) -> int:
        return self._count

    def refresh(self) -> None:
        """Read what other drivers have appended since. Costs the looks at two names when there is nothing."""
        with self._lock:
            self._check_identity()
            if self._last is not None and not is_there(self._segment_path(self._last)):
                self._put_back()
            if not self._count:
                self._load_checkpoint()
            read = 0
            while self._read_next():
                read += 1
            if read:
                # Whoever appended may have been killed before the names were durable, and we rely on them from now on.
                fsync_directory(self.folder / _SEGMENTS)

    def append(self, files: Files, *, after: int) -> bool:
        """Take these files, in this order, behind the ``after`` files that the caller knows of. False when another
        thread or driver was first: nothing was taken then, and `refresh` shows what that one took. What is taken is
        durable when this returns."""
        with self._lock:
            if self._count != after:
                return False
            if not self._is_head_there():
                self._put_back()
                return False
            segment = Segment(self._count, self._head, files)
            data = segment.encode()
            path = self._segment_path(self._count)
            failpoint("ledger.before_segment")
            try:
                create_exclusively(path, data)
            except FileExistsError:
                return False
            except FileNotFoundError as error:
                raise self._gone() from error
            failpoint("ledger.after_segment")
            self._advance(segment, data)
            self._write_checkpoint_when_due()
            return True

    def stamp(self, end: int) -> str | None:
        """What tells the files before ``end`` from those of another history; None where fewer are known."""
        with self._lock:
            return self._history.stamp(self.files, end) if 0 < end <= self._count else None

    def pinned_schema(self) -> pa.Schema | None:
        """The columns that were taken from the first file."""
        try:
            data = (self.folder / _SCHEMA_FILE).read_bytes()
        except FileNotFoundError:
            return None
        try:
            return pa.ipc.read_schema(pa.py_buffer(data))
        except (pa.ArrowException, OSError) as error:
            raise damaged("the ledger's schema can't be read", str(self.folder / _SCHEMA_FILE), str(error)) from error

    def pin_schema(self, schema: pa.Schema) -> pa.Schema:
        """Keep the columns for good, and return those that are kept: another driver's when it was first."""
        with suppress(FileExistsError):
            create_exclusively(self.folder / _SCHEMA_FILE, schema.serialize().to_pybytes())
        return self.pinned_schema() or schema

    def _is_head_there(self) -> bool:
        """Whether the segment that the next one continues is the one on the disk."""
        if self._last is None:
            return True
        with suppress(FileNotFoundError):
            return digest_of(self._segment_path(self._last).read_bytes()) == self._head
        return False

    def _put_back(self) -> None:
        log.warning("the ledger %s was put back from a backup: it is read anew", self.folder)
        self._begin()

    def _read_next(self) -> bool:
        path = self._segment_path(self._count)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return False
        segment = Segment.decode(data, where=str(path))
        if (segment.first, segment.previous) != (self._count, self._head):
            raise damaged("the chain of the ledger is broken", str(path), "it continues another segment")
        self._advance(segment, data)
        return True

    def _advance(self, segment: Segment, data: bytes) -> None:
        self._files.append(segment.files)
        self._last = self._count
        self._count += len(segment.files)
        self._head = digest_of(data)
        self._since_checkpoint += 1

    def _write_checkpoint_when_due(self) -> None:
        if self._since_checkpoint < SEGMENTS_PER_CHECKPOINT or self._last is None:
            return
        failpoint("ledger.before_checkpoint")
        folder = self.folder / _CHECKPOINTS
        older = _checkpoints(folder)
        with suppress(FileExistsError):
            data = LedgerCheckpoint(self.ledger_id, self._head, self._last, self.files).encode()
            create_exclusively(folder / f"{self._count:020d}.arrow", data)
        self._since_checkpoint = 0
        for path in older[:-1]:  # the one before stays, for a driver that is reading it
            path.unlink(missing_ok=True)

    def _load_checkpoint(self) -> None:
        for path in reversed(_checkpoints(self.folder / _CHECKPOINTS)):
            try:
                found = LedgerCheckpoint.decode(path.read_bytes(), where=str(path))
                if self._bears_out(found):
                    self._files, self._count = [found.files], len(found.files)
                    self._head, self._last = found.digest, found.last
                    self._since_checkpoint = 0
                    return
                log.warning("checkpoint %s does not fit the ledger, the segments are read instead", path)
            except FileNotFoundError:
                continue  # another driver has a newer one
            except CorruptTable as error:
                log.warning("%s; the segments are read instead", error)

    def _bears_out(self, found: LedgerCheckpoint) -> bool:
        """Whether the last segment that it stands for is the one that is there."""
        if found.ledger_id != self.ledger_id:
            return False
        with suppress(FileNotFoundError):
            return digest_of(self._segment_path(found.last).read_bytes()) == found.digest
        return False

    def _check_identity(self) -> None:
        try:
            about = _about(self.folder / _LEDGER_FILE)
        except FileNotFoundError as error:
            raise self._gone() from error
        if about["id"] != self.ledger_id:
            raise self._gone()

    def _gone(self) -> TableNotFound:
        return TableNotFound(
            "the ledger was removed or recreated while it was in use",
            where=str(self.folder),
            fix="Restore it from a backup, or start again with a new table in the lake.",
        )

    def _segment_path(self, first: int) -> Path:
        return self.folder / _SEGMENTS / f"{first:020d}.json"


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(folder / name for name in names_in(folder) if name.endswith(".arrow") and not name.startswith("."))


def _about(file: Path) -> dict[str, str]:
    try:
        about = json.loads(file.read_bytes())
        check_version(about, str(file))
        return {key: str(about[key]) for key in ("id", "path", "table")}
    except (ValueError, TypeError, KeyError) as error:
        raise damaged("the ledger can't be read", str(file), f"{type(error).__name__}: {error}") from error
