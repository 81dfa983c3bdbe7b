"""A round of ours beside pyiceberg's own ``append`` of the same rows: the two tables tell a reader the same."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.spi import PartitionField

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("g", pa.int32()),
        pa.field("s", pa.string()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("x", pa.float64()),
        pa.field("nested", pa.struct([pa.field("a", pa.int32()), pa.field("more", pa.list_(pa.string()))])),
    ]
)
EPOCHS = [[0, 1, 2, 3], [4], [5, 6]]
OF_A_WRITER = {"added-files-size", "total-files-size"}
"""Keys of a summary: two writers compress differently."""
OF_A_ROUND = ("laketier.", "spark.sql.streaming.")
"""Keys that say which epoch it was. pyiceberg's own append has none."""
BY_CHOICE = {"values": {9}, "nans": {5}, "bounds": {5, 7}}
"""Field ids. We count nothing below a list. We count NaN, and give no bounds beside one. We give bounds in a struct."""


def batch(ids: list[int]) -> pa.RecordBatch:
    moment = dt.datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=dt.UTC)
    rows = [
        {
            "id": i,
            "g": i % 2,
            "s": None if i == 3 else "ü" * (20 if i == 2 else 3),
            "at": moment + dt.timedelta(days=i),
            "x": [0.5, float("nan"), None, -1.0][i % 4],
            "nested": None if i == 1 else {"a": i, "more": ["x", None]},
        }
        for i in ids
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def summary(snapshot: Any) -> dict[str, str]:
    said = {"operation": snapshot.summary.operation.value, **snapshot.summary.additional_properties}
    return {key: value for key, value in said.items() if key not in OF_A_WRITER and not key.startswith(OF_A_ROUND)}


def entries(table: Any, snapshot: Any) -> list[Any]:
    """All that is said of each manifest and of each file, but for names, sizes and snapshot ids."""
    order = {each.snapshot_id: number for number, each in enumerate(table.metadata.snapshots)}
    found = []
    for manifest in snapshot.manifests(table.io):
        counts = [getattr(manifest, f"{kind}_{what}_count")
                  for kind in ("added", "existing", "deleted") for what in ("files", "rows")]  # fmt: skip
        files = []
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            file = entry.data_file
            files.append(
                {
                    "entry": (
                        entry.status, order[entry.snapshot_id], entry.sequence_number, entry.file_sequence_number,
                    ),
                    "file": (
                        file.content, file.file_format, file.partition, file.record_count, file.spec_id,
                        file.sort_order_id, file.key_metadata, file.equality_ids, len(file.split_offsets),
                    ),
                    "columns": sorted(file.column_sizes),
                    "values": [shared("values", each) for each in (file.value_counts, file.null_value_counts)],
                    "nans": shared("nans", file.nan_value_counts),
                    "bounds": [shared("bounds", each) for each in (file.lower_bounds, file.upper_bounds)],
                }
            )  # fmt: skip
        fields = [(p.contains_null, p.contains_nan, p.lower_bound, p.upper_bound) for p in manifest.partitions or ()]
        found.append(
            (
                manifest.content, manifest.partition_spec_id, manifest.sequence_number, manifest.min_sequence_number,
                order[manifest.added_snapshot_id], counts, fields, sorted(files, key=lambda file: str(file["file"])),
            )
        )  # fmt: skip
    return found


def shared(kind: str, of_fields: Any) -> dict[int, Any]:
    return {field_id: value for field_id, value in of_fields.items() if field_id not in BY_CHOICE[kind]}


def columns(table: Any) -> set[str]:
    """The Parquet schemas of the table's files: names, types and field ids at every level."""
    paths = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
    return {str(pq.ParquetFile(path).schema).partition("\n")[2] for path in paths}


def rows(table: Any) -> list[Any]:
    return table.scan().to_arrow().sort_by("id").to_pylist()


@pytest.mark.parametrize("parted", [False, True])
def test_an_append_is_what_pyicebergs_own_append_makes(make: Any, parted: bool) -> None:
    by = (PartitionField("g"),) if parted else ()
    ours, theirs = (make(SCHEMA, by, name=name) for name in ("ours", "theirs"))
    for epoch, ids in enumerate(EPOCHS):
        ours.round(ours.token(epoch), batch(ids))
        theirs.table().append(pa.Table.from_batches([batch(ids)]))
        mine, other = ours.table(), theirs.table()
        one, two = mine.current_snapshot(), other.current_snapshot()
        assert summary(one) == summary(two)
        assert entries(mine, one) == entries(other, two)
        assert (one.sequence_number, one.schema_id) == (two.sequence_number, two.schema_id)
        assert mine.metadata.last_sequence_number == other.metadata.last_sequence_number
        assert mine.metadata.refs.keys() == other.metadata.refs.keys()
        assert [len(each.metadata.snapshot_log) for each in (mine, other)] == [epoch + 1] * 2
    assert mine.schema() == other.schema()
    assert columns(mine) == columns(other)
    assert repr(rows(mine)) == repr(rows(other)), "a NaN is not equal to itself, and its text is"
