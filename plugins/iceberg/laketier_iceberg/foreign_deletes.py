"""Commits files of deletes, as Spark's merge-on-read does and pyiceberg can't. For the harness and for tests: no driver
uses it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.typedef import Record

from laketier_iceberg.snapshot_writer import SnapshotWriter
from laketier_iceberg.times import next_time
from laketier_iceberg.transaction import StagedSnapshot


class _DeletesWriter(ManifestWriterV2):
    """Both the list of manifests and the manifest itself say that it is one of deletes."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        writer = super().new_writer()
        # pyiceberg always writes "data" there. The header is written when the file is opened, which is later.
        writer.metadata = {**writer.metadata, "content": "deletes"}
        return writer


def add_deletes(
    table: Table,
    content: DataFileContent,
    columns: Mapping[str, Sequence[Any]],
    equality_ids: list[int] | None = None,
) -> None:
    """Commit a file of deletes with ``columns`` to a table that has rows and no partitions."""
    parent = table.metadata.current_snapshot()
    assert parent is not None, "a table without rows has none to delete"
    writer = SnapshotWriter(table)
    entry = ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=writer.snapshot_id,
        sequence_number=None,
        file_sequence_number=None,
        data_file=_file_of(table, content, columns, equality_ids),
    )
    path = table.location_provider().new_metadata_location(f"{uuid.uuid4()}-deletes.avro")
    output = table.io.new_output(path)
    with _DeletesWriter(table.spec(), table.schema(), output, writer.snapshot_id, "deflate") as manifest:
        manifest.add(entry)
    manifests = [manifest.to_manifest_file(), *parent.manifests(table.io)]
    number = table.metadata.next_sequence_number()
    snapshot = Snapshot.model_validate(
        {
            "snapshot-id": writer.snapshot_id,
            "parent-snapshot-id": parent.snapshot_id,
            "manifest-list": writer.manifest_list(manifests, parent.snapshot_id, number),
            "sequence-number": number,
            "summary": writer.summary(Operation.DELETE, (), (), {}),
            "schema-id": table.metadata.current_schema_id,
            "timestamp-ms": next_time(table.metadata),
        }
    )
    StagedSnapshot(table, snapshot, writer).publish()


def _file_of(
    table: Table, content: DataFileContent, columns: Mapping[str, Sequence[Any]], equality_ids: list[int] | None
) -> DataFile:
    path = f"{table.location()}/data/deletes-{uuid.uuid4().hex}.parquet"
    rows = pa.table(dict(columns))
    output = table.io.new_output(path)
    with output.create() as target:
        pq.write_table(rows, target)
    return DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows.num_rows,
        file_size_in_bytes=len(output),
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        key_metadata=None,
        split_offsets=None,
        equality_ids=equality_ids,
        sort_order_id=None,
    )
