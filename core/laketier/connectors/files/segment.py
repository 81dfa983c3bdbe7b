"""The documents of the ledger, as bytes: segments, each with the name of the one before, and checkpoints of many
segments."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from laketier.connectors.files.files import Files
from laketier.spi import CorruptTable

VERSION = 1
_FIX = "Restore the ledger from a backup. Without it, which files were taken is known to the lake tables alone."


@dataclass(frozen=True, eq=False)
class Segment:
    """The files of one discovery: ordinals from ``first`` on. ``previous`` is the digest of the segment before, or
    the ledger's id: so a segment fits behind one history only."""

    first: int
    previous: str
    files: Files

    def encode(self) -> bytes:
        """The document."""
        files = self.files
        columns = {
            "path": files.paths.to_pylist(),
            "size": files.sizes.tolist(),
            "mtime_ns": files.mtimes.tolist(),
        }
        if files.inodes.any():
            columns["inode"] = files.inodes.tolist()
        document = {"version": VERSION, "first": self.first, "previous": self.previous, "files": columns}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def decode(cls, data: bytes, *, where: str) -> Segment:
        """Read what `encode` wrote. Raises `CorruptTable`."""
        try:
            document = json.loads(data)
            check_version(document, where)
            columns = document["files"]
            lengths = {len(columns[name]) for name in ("path", "size", "mtime_ns", "inode") if name in columns}
            if len(lengths) != 1 or not min(lengths):
                raise ValueError("its columns are empty, or of different length")
            files = Files.of(columns["path"], columns["size"], columns["mtime_ns"], columns.get("inode"))
            first = int(document["first"])
            if not 0 <= first < 2**63:
                raise ValueError(f"its first ordinal is {first}")
            return cls(first, str(document["previous"]), files)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError, pa.ArrowException) as error:
            raise damaged("a segment of the ledger can't be read", where, f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, eq=False)
class LedgerCheckpoint:
    """All files up to a segment, so that a new process need not read each. ``digest`` and ``last`` (its first ordinal)
    are those of that segment. Derived: it can be made again from the segments."""

    ledger_id: str
    digest: str
    last: int
    files: Files

    def encode(self) -> bytes:
        """An Arrow file, with its own digest before it."""
        files = self.files
        columns = [files.paths, files.sizes, files.mtimes, files.inodes]
        table = pa.table(columns, ["path", "size", "mtime_ns", "inode"])
        about = {"version": VERSION, "ledger": self.ledger_id, "digest": self.digest, "last": self.last}
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(sink, table.schema.with_metadata({"about": json.dumps(about)}), options=options) as writer:
            writer.write_table(table)
        body = sink.getvalue().to_pybytes()
        return digest_of(body).encode() + b"\n" + body

    @classmethod
    def decode(cls, data: bytes, *, where: str) -> LedgerCheckpoint:
        """Read what `encode` wrote. Raises `CorruptTable`."""
        digest, _, body = data.partition(b"\n")
        if digest_of(body).encode() != digest:
            raise damaged("a checkpoint of the ledger can't be read", where, "its digest is another one")
        table = pa.ipc.open_file(body).read_all()
        about: dict[str, Any] = json.loads(table.schema.metadata[b"about"])
        check_version(about, where)
        numbers = [
            table[name].to_numpy().copy() for name in ("size", "mtime_ns", "inode") if name in table.column_names
        ]
        numbers += [np.zeros(len(table), np.int64)] * (3 - len(numbers))
        files = Files(table["path"].combine_chunks(), *numbers)
        return cls(about["ledger"], about["digest"], about["last"], files)


def digest_of(data: bytes) -> str:
    """Compute the digest that names a document."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def damaged(what: str, where: str, why: str) -> CorruptTable:
    """The error, with what can be done about it."""
    return CorruptTable(what, where=where, why=why, fix=_FIX)


def check_version(document: dict[str, Any], where: str) -> None:
    """Raises `CorruptTable` for a document of another laketier."""
    if document["version"] != VERSION:
        raise CorruptTable(
            f"the ledger has version {document['version']}, and this laketier knows {VERSION}",
            where=where,
            fix="Upgrade laketier on all drivers.",
        )
