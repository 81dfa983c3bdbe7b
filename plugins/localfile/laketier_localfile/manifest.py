"""Manifests: one immutable document per commit, chained by hash, each complete in itself for the next writer.

A manifest holds what its commit added and the watermarks of *all* pipelines, so that a writer reads one manifest,
whatever the length of the history. What a snapshot consists of is the sum of its manifests (see `rollup`).

On disk a document is ``{"sha256":"<of the body>","body":<canonical JSON>}``: one line that `jq` reads and whose
every bit is checked.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import pyarrow as pa

from laketier.spi import BucketSpec, CorruptTable, OutsideTable, PartitionField, TableDescriptor, Watermark
from laketier_localfile.layout import data_path

FORMAT_VERSION = 1
KEYED_VERSION = 2
"""Of documents that name removed files, or a primary key. What knows version 1 alone would show replaced rows again, or
append rows that are there already, so it must refuse them; all other documents stay as it reads them."""

_HEAD = b'{"sha256":"'
_MIDDLE = b'","body":'
_TAIL = b"}\n"
_BODY = len(_HEAD) + 64 + len(_MIDDLE)

T = TypeVar("T")


@dataclass(frozen=True)
class FileEntry:
    """One data file. ``path`` is the final one, relative to the table. ``footer`` is a digest of the Parquet footer.
    ``schema`` is the number of the manifest that holds the metadata it was written with. ``stats``: column →
    (least, greatest, nulls), values as canonical text."""

    path: str
    rows: int
    bytes: int
    footer: str
    schema: int
    partition: tuple[tuple[str, str | None], ...] = ()
    bucket: int | None = None
    stats: Mapping[str, tuple[str | None, str | None, int]] = field(default_factory=lambda: MappingProxyType({}))

    def to_plain(self) -> dict[str, Any]:
        """As JSON's own types."""
        return {
            "path": self.path,
            "rows": self.rows,
            "bytes": self.bytes,
            "footer": self.footer,
            "schema": self.schema,
            "partition": [list(item) for item in self.partition],
            "bucket": self.bucket,
            "stats": {name: list(values) for name, values in self.stats.items()},
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> FileEntry:
        """Undo `to_plain`. Raises `OutsideTable`."""
        return cls(
            path=data_path(plain["path"], where="added"),
            rows=whole(plain["rows"]),
            bytes=whole(plain["bytes"]),
            footer=plain["footer"],
            schema=whole(plain["schema"]),
            partition=tuple((name, value) for name, value in plain["partition"]),
            bucket=plain["bucket"],
            stats={name: (low, high, nulls) for name, (low, high, nulls) in plain["stats"].items()},
        )


@dataclass(frozen=True)
class Commit:
    """What identifies a commit in the history. ``at`` is in ms since the epoch and never goes back."""

    number: int
    at: int
    commit_id: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One commit. ``previous`` is the SHA-256 of the manifest before it. ``kind``: ``create``, ``alter``, ``append``,
    ``upsert`` or ``overwrite``; an overwrite drops all files before it, an upsert those whose paths are ``removed``.
    ``metadata_at`` is the number of the manifest that holds the table's metadata as of this one. ``watermarks``:
    pipeline → its last watermark, of all pipelines."""

    table_uuid: str
    number: int
    previous: str
    at: int
    commit_id: str
    kind: str
    metadata_at: int
    added: tuple[FileEntry, ...] = ()
    removed: tuple[str, ...] = ()
    watermarks: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    metadata: TableDescriptor | None = None
    sha256: str = ""

    @property
    def commit(self) -> Commit:
        """Its line in the history."""
        return Commit(self.number, self.at, self.commit_id, self.kind)

    @property
    def resets(self) -> bool:
        """Whether the files before it are no longer part of the table."""
        return self.kind == "overwrite"

    def watermark(self, pipeline: str) -> Watermark | None:
        """The last watermark of ``pipeline``."""
        text = self.watermarks.get(pipeline)
        return None if text is None else Watermark.from_json(text)

    def encode(self) -> bytes:
        """The document. `sha256` of what is read back is the one in its head."""
        keyed = self.removed or (self.metadata is not None and self.metadata.primary_key)
        return encode(
            {
                "version": KEYED_VERSION if keyed else FORMAT_VERSION,
                "table_uuid": self.table_uuid,
                "number": self.number,
                "previous": self.previous,
                "at": self.at,
                "commit_id": self.commit_id,
                "kind": self.kind,
                "metadata_at": self.metadata_at,
                "added": [entry.to_plain() for entry in self.added],
                **({"removed": list(self.removed)} if self.removed else {}),
                "watermarks": dict(self.watermarks),
                "metadata": None if self.metadata is None else _descriptor_to_plain(self.metadata),
            }
        )

    @classmethod
    def decode(cls, data: bytes, path: Path) -> Manifest:
        """Read `encode`'s document. Raises `CorruptTable` naming ``path``."""
        return decode(data, path, cls._from_body)

    @classmethod
    def _from_body(cls, body: dict[str, Any], sha256: str) -> Manifest:
        metadata = body["metadata"]
        return cls(
            table_uuid=body["table_uuid"],
            number=whole(body["number"]),
            previous=body["previous"],
            at=whole(body["at"]),
            commit_id=body["commit_id"],
            kind=body["kind"],
            metadata_at=whole(body["metadata_at"]),
            added=tuple(FileEntry.from_plain(entry) for entry in body["added"]),
            removed=removed_paths(body),
            watermarks=dict(body["watermarks"]),
            metadata=None if metadata is None else _descriptor_from_plain(metadata),
            sha256=sha256,
        )


def encode(body: Mapping[str, Any]) -> bytes:
    """A checked document of ``body``."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return _HEAD + hashlib.sha256(text).hexdigest().encode() + _MIDDLE + text + _TAIL


def digest_of(document: bytes) -> str:
    """The SHA-256 in the head of a document made by `encode`."""
    return document[len(_HEAD) : len(_HEAD) + 64].decode()


def decode(data: bytes, path: Path, build: Callable[[dict[str, Any], str], T]) -> T:
    """Check a document and build from its body and digest. Raises `CorruptTable` naming ``path``."""
    body = data[_BODY : -len(_TAIL)]
    sha256 = hashlib.sha256(body).hexdigest()
    if data != _HEAD + sha256.encode() + _MIDDLE + body + _TAIL:
        raise CorruptTable(
            "the file is damaged",
            where=str(path),
            why=f"its {len(data)} bytes do not match the checksum in its head",
            fix="Restore this file from a backup; the other files of the table are not affected.",
        )
    try:
        document = json.loads(body)
        if document["version"] not in (FORMAT_VERSION, KEYED_VERSION):
            raise CorruptTable(
                f"the file has version {document['version']!r}, and this plugin reads {FORMAT_VERSION} and "
                f"{KEYED_VERSION}",
                where=str(path),
                fix="Use a newer laketier-localfile.",
            )
        return build(document, sha256)
    except OutsideTable as error:
        raise CorruptTable(
            f"{error.where}: {error.what}",
            where=str(path),
            why=error.why or "somebody else than laketier wrote it",
            fix="Find out who wrote the file, and restore it from a backup. Nothing outside of the table was touched.",
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError) as error:
        raise CorruptTable("the file is not what its place says", where=str(path), why=repr(error)) from error


def whole(number: Any) -> int:
    """A number that may become part of a name, or a count. Raises `TypeError` and `ValueError` for any other value."""
    if type(number) is not int:
        raise TypeError(f"{number!r} is no whole number")
    if not 0 <= number < 2**63:
        raise ValueError(f"{number} is no count")
    return number


def removed_paths(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths below ``removed``. Raises `OutsideTable`."""
    return tuple(data_path(path, where="removed") for path in body.get("removed", ()))


def _descriptor_to_plain(descriptor: TableDescriptor) -> dict[str, Any]:
    buckets = descriptor.buckets
    return {
        # For people; the schema that counts is the one in Arrow's own encoding.
        "columns": [
            {"name": column.name, "type": str(column.type), "nullable": column.nullable} for column in descriptor.schema
        ],
        "arrow_schema": base64.b64encode(descriptor.schema.serialize()).decode("ascii"),
        "partition_by": [str(partition) for partition in descriptor.partition_by],
        "buckets": None
        if buckets is None
        else {"count": buckets.count, "keys": list(buckets.keys), "function": buckets.function},
        **({"primary_key": list(descriptor.primary_key)} if descriptor.primary_key else {}),
        "properties": dict(descriptor.properties),
        "comment": descriptor.comment,
    }


def _descriptor_from_plain(plain: dict[str, Any]) -> TableDescriptor:
    buckets = plain["buckets"]
    return TableDescriptor(
        schema=pa.ipc.read_schema(pa.py_buffer(base64.b64decode(plain["arrow_schema"]))),
        # Only identity fields are ever stored, and a column's name may hold what `PartitionField.parse` would read
        # as a transform.
        partition_by=tuple(PartitionField(name) for name in plain["partition_by"]),
        buckets=None if buckets is None else BucketSpec(buckets["count"], tuple(buckets["keys"]), buckets["function"]),
        primary_key=tuple(plain.get("primary_key", ())),
        properties=plain["properties"],
        comment=plain["comment"],
    )
