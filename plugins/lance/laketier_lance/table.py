"""What this plugin keeps in a dataset, and how a dataset becomes a `TableInfo`.

Everything is schema metadata: it survives appends, compaction, deletes, new columns, upserts and the cleanup of old
versions, and a `Merge` or `Overwrite` sets it in the same atomic step as the data.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from laketier.spi import CorruptTable, TableDescriptor, TableInfo, TablePath
from laketier_lance.dataset import read_transaction, reading
from laketier_lance.lance_schema import with_field_ids
from laketier_lance.versions import versions_of

if TYPE_CHECKING:
    from lance import LanceDataset

TABLE_UUID = b"laketier.table-uuid"
FOLLOWED_AS = b"laketier.followed-as"
"""Of a dataset that laketier did not create: the identity by which logs knew it before the first publish."""
DESCRIPTOR = b"laketier.descriptor"
WATERMARK_PREFIX = b"laketier.watermark."
LAST = b"laketier.last-round"
"""The version that the newest round of any pipeline was meant for."""
LOST_PREFIX = b"laketier.lost."
"""Of a pipeline: the version of a round that a restore took away. Until the pipeline publishes again."""
ERASED = b"laketier.erased"
"""The version in which laketier's rows were found without any of the above, so that pipelines may be forgotten."""

COMMIT_ID = "laketier.commit-id"
PIPELINE = "laketier.pipeline"
EPOCH = "laketier.epoch"
ROWS = "laketier.rows"
"""Keys in the properties of a transaction. For `landed`, history and audits; no decision needs them."""

_PLACES = uuid.UUID("0b5cf2b4-5a43-4b0a-8f0c-3d8f2f3c6d55")
_FOREIGN = uuid.UUID("8c0e5a9e-4b2f-4d62-9f0c-6f1b5e7c2a11")


def watermark_key(pipeline: str) -> bytes:
    """Where the watermark of ``pipeline`` is kept."""
    return WATERMARK_PREFIX + pipeline.encode()


def metadata_of(dataset: LanceDataset) -> dict[bytes, bytes]:
    """The schema metadata."""
    return dict(dataset.schema.metadata or {})


def table_uuid(dataset: LanceDataset, metadata: Mapping[bytes, bytes]) -> str:
    """The table's identity. Lance has none: a dataset that laketier created carries one; for any other it is
    derived from the oldest transaction that is still there, and the first publish stores it."""
    stored = metadata.get(TABLE_UUID)
    if stored is not None:
        return stored.decode()
    with reading(dataset.uri):
        oldest = versions_of(dataset)[0]
    transaction = read_transaction(dataset, oldest)
    name = f"version {oldest}" if transaction is None else transaction.uuid
    return str(uuid.uuid5(_FOREIGN, name))


def lasting_id(location: str, metadata: Mapping[bytes, bytes]) -> str | None:
    """The identity by which logs know a dataset that laketier did not create, also once it has published there: that
    derived from old versions goes with them. It is known by its place. None for one of laketier's own."""
    followed = metadata.get(FOLLOWED_AS)
    if followed is not None:
        return followed.decode(errors="replace")
    return None if TABLE_UUID in metadata else str(uuid.uuid5(_PLACES, location))


def owned(metadata: Mapping[bytes, bytes], uuid_of_table: str, location: str) -> dict[bytes, bytes]:
    """``metadata`` with the identities that the dataset has from its first commit of laketier's on."""
    followed = lasting_id(location, metadata)
    more = {} if followed is None else {FOLLOWED_AS: followed.encode()}
    return {**metadata, **more, TABLE_UUID: uuid_of_table.encode()}


def descriptor_metadata(descriptor: TableDescriptor) -> bytes:
    """What of a descriptor Lance itself has no place for."""
    document: dict[str, object] = {
        "v": 1,
        "comment": descriptor.comment,
        "properties": dict(descriptor.properties),
    }
    if descriptor.primary_key:
        document["primary_key"] = list(descriptor.primary_key)
    return json.dumps(document).encode()


def number_in(metadata: Mapping[bytes, bytes], key: bytes, location: str) -> int:
    """The number below ``key``, 0 where there is none. Raises `CorruptTable`."""
    try:
        return int(metadata.get(key, b"0"))
    except ValueError as error:
        raise _unread(key, location, error) from error


def _described(metadata: Mapping[bytes, bytes], location: str) -> tuple[str | None, dict[str, str], tuple[str, ...]]:
    """The comment, the properties and the key, which another tool may have written. Raises `CorruptTable`."""
    if DESCRIPTOR not in metadata:
        return None, {}, ()
    try:
        document = json.loads(metadata[DESCRIPTOR])
        comment, properties, key = document["comment"], document["properties"], document.get("primary_key", [])
        texts = [*properties, *properties.values(), *key, *([] if comment is None else [comment])]
        if type(key) is not list or not all(type(text) is str for text in texts):
            raise TypeError("a comment, properties and the names of a key are texts")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _unread(DESCRIPTOR, location, error) from error
    return comment, properties, tuple(key)


def _unread(key: bytes, location: str, error: Exception) -> CorruptTable:
    return CorruptTable(
        f"the metadata {key.decode()!r} can't be read",
        where=location,
        why=repr(error),
        fix="Something else wrote it: restore an older version of the table.",
    )


def table_info(path: TablePath, dataset: LanceDataset, location: str) -> TableInfo:
    """The table as ``dataset`` sees it. Raises `CorruptTable`."""
    metadata = metadata_of(dataset)
    comment, properties, key = _described(metadata, location)
    schema: pa.Schema = with_field_ids(dataset.lance_schema)
    # Without a column of its key, which others can drop or rename, a table has none: who asks for one is refused.
    key = key if set(key) <= set(schema.names) else ()
    return TableInfo(
        path=path,
        descriptor=TableDescriptor(schema, primary_key=key, properties=properties, comment=comment),
        table_uuid=table_uuid(dataset, metadata),
        location=location,
        snapshot_id=dataset.version,
    ).with_handle(dataset)
