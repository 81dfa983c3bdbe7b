"""A staged snapshot beside one of pyiceberg's own: same manifests, same entries, same summary."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.table import Transaction
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record

from laketier.spi import PartitionField
from laketier_iceberg.transaction import Leaving, stage

MERGING = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "3"}
SMALL = {**MERGING, "commit.manifest.min-count-to-merge": "1", "commit.manifest.target-size-bytes": "9000"}
"""Two manifests fill a bin, and the oldest is alone in its own now and then."""


def described(table: Any, snapshot: Snapshot) -> dict[str, Any]:
    """All that is stored of a snapshot, but for names that are random."""
    manifests = []
    own = {snapshot.snapshot_id: "own"}
    for manifest in snapshot.manifests(table.io):
        entries = [
            (
                entry.status, own.get(entry.snapshot_id, entry.snapshot_id), entry.sequence_number,
                entry.file_sequence_number, entry.data_file.file_path, entry.data_file.spec_id,
                entry.data_file.record_count, entry.data_file.partition,
            )
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
        ]  # fmt: skip
        counts = [getattr(manifest, f"{kind}_{what}_count")
                  for kind in ("added", "existing", "deleted") for what in ("files", "rows")]  # fmt: skip
        manifests.append(
            (
                manifest.content, manifest.partition_spec_id, manifest.sequence_number, manifest.min_sequence_number,
                own.get(manifest.added_snapshot_id, manifest.added_snapshot_id), counts, entries,
            )
        )  # fmt: skip
    rest = snapshot.model_dump(exclude={"snapshot_id", "manifest_list", "timestamp_ms"})
    return {"manifests": manifests, **rest}


def file(table: Any, number: int, group: int) -> DataFile:
    made = DataFile.from_args(
        content=0, file_path=f"{table.location()}/data/{number}.parquet", file_format=FileFormat.PARQUET,
        partition=Record(group), record_count=10 + number, file_size_in_bytes=100, column_sizes={}, value_counts={},
        null_value_counts={}, nan_value_counts={}, lower_bounds={}, upper_bounds={}, key_metadata=None,
        split_offsets=None, equality_ids=None, sort_order_id=None,
    )  # fmt: skip
    made.spec_id = 0
    return made


def pyicebergs(table: Any, files: list[DataFile], *, merging: bool, replace: bool) -> Snapshot:
    """What pyiceberg stages for the same change."""
    transaction = Transaction(table)
    update = transaction.update_snapshot(snapshot_properties={"own": "key"})
    producer: Any = update.overwrite() if replace else update.merge_append() if merging else update.fast_append()
    for each in files:
        producer.append_data_file(each)
    if replace:
        for task in table.scan().plan_files():
            producer.delete_data_file(task.file)
    producer.commit()
    snapshot = transaction.table_metadata.current_snapshot()
    assert snapshot is not None
    return snapshot


@pytest.mark.parametrize(("merging", "left"), [({}, 4), (MERGING, 2), (SMALL, 2)], ids=["not", "merging", "small"])
def test_a_snapshot_is_what_pyiceberg_writes_for_the_same_change(make: Any, merging: dict[str, str], left: int) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("g", pa.int32())])
    limit = {"write.summary.partition-limit": "9"}
    events = make(schema, (PartitionField("g"),), properties={**limit, **merging})
    changes = [[0, 1], [], [2], [3, 4], None, [5], [6], [7]]
    for files in changes:
        table = events.table()
        new = [file(table, number, number % 2) for number in files or [90]]
        new = new if files != [] else []
        staged = stage(table, new, {"own": "key"}, replace=files is None)
        theirs = described(table, pyicebergs(table, new, merging=bool(merging), replace=files is None))
        assert described(table, staged.snapshot) == theirs
        staged.publish()
    assert len(events.table().current_snapshot().manifests(table.io)) == left


def test_a_manifest_without_live_files_is_gone_with_the_next_commit(events: Any) -> None:
    for epoch in range(2):
        events.round(events.token(epoch), events.batch(epoch * 10, epoch * 10 + 10))
    table = events.table()
    paths = [task.file.file_path for task in table.scan().plan_files()]
    stage(table, [], {}, replace=False, leaving=Leaving.of(table, paths)).publish()
    emptied = events.table()
    assert emptied.current_snapshot().summary["total-records"] == "0"
    assert [m.deleted_files_count for m in emptied.current_snapshot().manifests(emptied.io)] == [1, 1]
    stage(emptied, [], {}, replace=False).publish()
    assert events.table().current_snapshot().manifests(emptied.io) == []


def test_no_two_attempts_share_a_file(events: Any) -> None:
    table = events.table()
    one, two = (stage(table, [], {}, replace=False) for _ in range(2))
    assert one.snapshot.snapshot_id != two.snapshot.snapshot_id
    assert one.snapshot.manifest_list != two.snapshot.manifest_list
    one.forget()
    two.publish()
    assert events.table().current_snapshot().manifests(table.io) == []
