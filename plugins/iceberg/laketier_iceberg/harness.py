"""The harness of this format for the conformance suite: a foreign rollback, expiry, compaction, deletes and updates,
and tables of others. Not used otherwise."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from laketier.spi import (
    CommitterInitContext,
    LakeStorage,
    LakeStorageConfig,
    ScanRequest,
    TableDescriptor,
    TableInfo,
    TablePath,
    Token,
    Watermark,
    WriterInitContext,
    new_attempt_id,
)
from laketier_iceberg.connection import EMBEDDED_FILE, disconnect
from laketier_iceberg.foreign_tables import TABLES
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.storage import IcebergStorage
from laketier_iceberg.stored import document_at

if TYPE_CHECKING:
    from laketier_conformance.stores import ObjectStore


class IcebergHarness:
    """Found by the entry point ``iceberg`` of group ``laketier.conformance``."""

    engine_modules = ("pyiceberg", "sqlalchemy")
    foreign_tables = TABLES
    table_properties: ClassVar[Mapping[str, Sequence[str]]] = {
        "write.parquet.compression-codec": ("snappy", "gzip", "uncompressed", "zstd"),
        "write.target-file-size-bytes": ("1", "1000"),
        "write.metadata.metrics.default": ("none", "counts", "truncate(1)", "full"),
        "write.metadata.compression-codec": ("gzip", "none"),
        "write.metadata.previous-versions-max": ("0", "1"),
        "write.object-storage.enabled": ("true", "false"),
        "commit.manifest.min-count-to-merge": ("0", "2"),
    }
    odd_properties: ClassVar[Mapping[str, Sequence[str]]] = {
        "write.parquet.compression-level": ("99", "x"),
        "write.parquet.row-group-limit": ("1", "x"),
        "write.avro.compression-codec": ("zstd", "odd"),
        "write.metadata.metrics.default": ("truncate(0)", "truncate(x)"),
        "write.metadata.metrics.column.nobody": ("full",),
        "write.format.default": ("orc",),
        "write.data.path": ("", "../outside", "file:///nowhere/at/all", "http://[x", "odd://x"),
        "write.metadata.path": ("", "elsewhere", "odd://x"),
        "write.py-location-provider.impl": ("os.path",),
        "py-io-impl": ("os.path",),
        "history.expire.max-snapshot-age-ms": ("0", "x"),
        "gc.enabled": ("false", "maybe"),
        "format-version": ("1", "x"),
        "schema.name-mapping.default": ("[]", "{}", "no JSON"),
        "s3.endpoint": ("http://127.0.0.1:9",),
        "commit.retry.num-retries": ("x",),
    }

    def warm_up(self, folder: Path) -> None:
        """SQL is compiled, classes are mapped to tables, and schemas of Avro read, by two epochs without rows: neither
        pyarrow nor pyiceberg starts a thread for these."""
        storage = IcebergStorage(LakeStorageConfig(str(folder), IcebergOptions()))
        table = storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(pa.schema([("id", pa.int64())])))
        committer = storage.tiering_factory(table).create_committer(CommitterInitContext(new_attempt_id()))
        for epoch in range(2):
            state = committer.open()
            committer.publish(state, [], Watermark(Token("warm", "run", epoch), new_attempt_id()))
        committer.close()
        disconnect()

    def set_property(self, storage: LakeStorage, table: TableInfo, key: str, value: str | None) -> None:
        """Metadata with another property, as any engine writes them: pyiceberg refuses some values."""
        catalog = sqlite3.connect(Path(table.location).parents[1] / EMBEDDED_FILE)
        here = (table.path.database, table.path.table)
        with closing(catalog), catalog:
            (old,) = catalog.execute(
                "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?", here
            ).fetchone()
            metadata = document_at({}, old)
            properties = {name: text for name, text in metadata["properties"].items() if name != key}
            metadata["properties"] = properties if value is None else {**properties, key: value}
            folder, _, file = old.rpartition("/")
            new = f"{folder}/{int(file.partition('-')[0]) + 1:05}-{uuid4()}.metadata.json"
            Path(new.removeprefix("file://")).write_text(json.dumps(metadata), encoding="utf-8")
            catalog.execute(
                "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? "
                "WHERE table_namespace = ? AND table_name = ?",
                (new, old, *here),
            )

    def object_store(self, store: ObjectStore) -> dict[str, str]:
        """With a catalog on the local disk."""
        catalog = {
            "type": "sql",
            "uri": f"sqlite:///{store.folder}/catalog.sqlite",
            "s3.endpoint": store.endpoint,
            "s3.access-key-id": store.access_key_id,
            "s3.secret-access-key": store.secret_access_key,
            "s3.region": store.region,
            "s3.force-virtual-addressing": "false",
            "s3.request-timeout": "1",
            # The usual one waits for half a second before it asks again.
            "s3.retry-strategy-impl": "pyarrow.fs.AwsDefaultS3RetryStrategy",
        }
        return {f"catalog.{name}": value for name, value in catalog.items()}

    def roll_back(self, storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None:
        """Iceberg's own ``rollback_to_snapshot``."""
        assert isinstance(storage, IcebergStorage)
        storage.load(table.path).manage_snapshots().rollback_to_snapshot(snapshot_id).commit()

    def expire(self, storage: LakeStorage, table: TableInfo) -> None:
        """pyiceberg's own ``expire_snapshots``, of all but the newest."""
        assert isinstance(storage, IcebergStorage)
        loaded = storage.load(table.path)
        current = loaded.metadata.current_snapshot_id
        old = [snapshot.snapshot_id for snapshot in loaded.snapshots() if snapshot.snapshot_id != current]
        loaded.maintenance.expire_snapshots().by_ids(old).commit()

    def erase(self, storage: LakeStorage, table: TableInfo) -> None:
        """All properties go, as with a tool that sets those that it knows."""
        assert isinstance(storage, IcebergStorage)
        loaded = storage.load(table.path)
        loaded.transaction().remove_properties(*loaded.properties).commit_transaction()

    def compact(self, storage: LakeStorage, table: TableInfo) -> None:
        """What Spark's ``rewrite_data_files`` leaves: a snapshot of the operation ``replace``, whose one file has the
        rows of all others. pyiceberg makes no such snapshot, so this plugin's own parts make it. A table without
        partitions."""
        from pyiceberg.table.snapshots import Operation, Summary

        from laketier_iceberg.data_files import data_files
        from laketier_iceberg.snapshot_writer import SnapshotWriter
        from laketier_iceberg.transaction import Leaving, StagedSnapshot, stage

        assert isinstance(storage, IcebergStorage)
        _refuse_partitions(table)
        source, factory = storage.source(table), storage.tiering_factory(table)
        plan = source.plan(ScanRequest())
        writer = factory.create_writer(WriterInitContext(new_attempt_id()))
        for split in plan.splits:
            for rows in source.read(split, plan.schema):
                writer.write(rows)
        loaded = storage.load(table.path)
        files = data_files(loaded, [writer.complete()], factory.plan.base)
        leaving = Leaving.of(loaded, {task.file.file_path for task in loaded.scan().plan_files()})
        staged = stage(loaded, files, {}, replace=False, leaving=leaving)
        told = staged.snapshot.summary
        assert told is not None
        summary = Summary(Operation.REPLACE, **told.additional_properties)
        snapshot = staged.snapshot.model_copy(update={"summary": summary})
        StagedSnapshot(loaded, snapshot, SnapshotWriter(loaded)).publish()

    def delete_rows(self, storage: LakeStorage, table: TableInfo, ids: Sequence[int]) -> None:
        """As Spark's merge-on-read: a file of the places of the rows. A table without partitions, on a disk."""
        from pyiceberg.manifest import DataFileContent

        from laketier_iceberg.foreign_deletes import add_deletes

        assert isinstance(storage, IcebergStorage)
        _refuse_partitions(table)
        gone = pa.array(ids, pa.int64())
        paths: list[str] = []
        places: list[int] = []
        for path in (path for split in storage.source(table).plan(ScanRequest()).splits for path in split.files):
            found = pc.indices_nonzero(pc.is_in(pq.read_table(path, columns=["id"])["id"], value_set=gone)).to_pylist()
            paths += [path] * len(found)
            places += found
        assert len(places) >= len(set(ids)), f"{len(places)} rows have one of {len(set(ids))} ids"
        add_deletes(storage.load(table.path), DataFileContent.POSITION_DELETES, {"file_path": paths, "pos": places})

    def update_rows(self, storage: LakeStorage, table: TableInfo, ids: Sequence[int], column: str, text: str) -> None:
        """pyiceberg's own ``overwrite``, which writes files anew. Its ``upsert`` takes the columns of the newest
        snapshot, and so fails after a rename. A table without partitions."""
        assert isinstance(storage, IcebergStorage)
        loaded = storage.load(table.path)
        rows = loaded.scan().to_arrow()
        rows = rows.filter(pc.is_in(rows["id"], pa.array(ids, pa.int64())))
        at = rows.schema.get_field_index(column)
        field = rows.schema.field(at)
        changed = rows.set_column(at, field, pa.array([text] * len(rows), field.type))
        loaded.overwrite(changed, overwrite_filter=f"id in ({', '.join(map(str, ids))})")

    def secret_options(self, folder: Path) -> Mapping[str, str]:
        """A catalog without a server, and the key of a store."""
        folder.mkdir(parents=True, exist_ok=True)
        store = {"catalog.s3.secret-access-key": "{secret}", "catalog.credential": "{secret}"}
        return {"catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/listed.db", **store}


def _refuse_partitions(table: TableInfo) -> None:
    if table.descriptor.partition_by:
        raise NotImplementedError("the files that this makes are of no partition")
