"""Readers while others commit, compact and expire: a slice of ``python -m laketier_verification.faults readers``, and
open scans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from depth import sizes
from laketier.spi import CorruptTable, LakeSource, LaketierError, ScanPlan, ScanRequest, SnapshotNotFound
from laketier_verification.faults import readers, watcher
from laketier_verification.faults.housekeeping import foreigner_for
from laketier_verification.faults.marked import MarkedTable, marks_of, rows_of

FORMATS = ("delta", "iceberg", "lance", "localfile")
EPOCHS = 6


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@sizes("epochs", 7, 40)
def test_readers_see_whole_epochs_and_never_go_back(tmp_path: Path, format: str, epochs: int) -> None:
    result = readers.run(format, epochs, tmp_path, compact_every=3 if epochs < 40 else 15)
    assert result.wrong == []
    assert set(result.readers) == {"laketier", readers.NAMES[format]}
    for answer in result.readers.values():
        # How many states a reader meets is the scheduler's affair; the long runs tell how many there were.
        assert answer["looks"] >= answer["states"] >= 1
        assert answer["epochs"] == epochs


@pytest.mark.parametrize(
    ("counts", "acknowledged", "begun", "last", "told"),
    [
        ({0: 10, 1: 10}, 2, 3, 2, []),
        ({0: 10, 1: 10, 2: 10}, 2, 3, 2, []),
        ({0: 10, 1: 10, 2: 5}, 2, 3, 2, ["epoch 2 has 5 of 10 rows"]),
        ({0: 10}, 2, 3, 1, ["saw 1 epochs, and 2 were acknowledged"]),
        ({0: 10}, 1, 3, 2, ["went back from 2 to 1 epochs"]),
        ({0: 10, 1: 10, 2: 10}, 2, 2, 2, ["saw 3 epochs, and 2 were begun"]),
        ({0: 10, 2: 10}, 3, 3, 2, ["epochs [1] are missing below 3"]),
    ],
)
def test_the_watcher_finds_fault(
    counts: dict[int, int], acknowledged: int, begun: int, last: int, told: list[str]
) -> None:
    seen = max(counts) + 1
    problems = watcher._judge(Counter(counts), 0, seen, acknowledged, begun, last)
    assert problems + watcher._partly(Counter(counts), seen, 10) == told


def _filled(tmp_path: Path, format: str) -> MarkedTable:
    options = {"expire-in-commit": "false"} if format == "iceberg" else {}
    table = MarkedTable(format, str(tmp_path / "warehouse"), options).create(partitioned=True)
    for epoch in range(EPOCHS):
        table.append(epoch, *(rows_of(epoch, "ours", 3, part) for part in ("a", "b")))
    return table


def _rest(source: LakeSource, plan: ScanPlan, already: list[pa.RecordBatch], read: int) -> pa.Table:
    rest = [batch for split in plan.splits[read:] for batch in source.read(split, plan.schema)]
    return pa.Table.from_batches([*already, *rest], schema=plan.schema)


def _begun(table: MarkedTable) -> tuple[LakeSource, ScanPlan, list[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    """A scan with one split read, and one split opened."""
    source = table.storage.source(table.info)
    plan = source.plan(ScanRequest())
    assert len(plan.splits) > 2
    return source, plan, list(source.read(plan.splits[0], plan.schema)), source.read(plan.splits[1], plan.schema)


@pytest.mark.parametrize("format", FORMATS)
def test_an_open_scan_survives_commits_compaction_and_expiry_within_the_retention(tmp_path: Path, format: str) -> None:
    table = _filled(tmp_path, format)
    expected = table.marks()
    source, plan, already, opened = _begun(table)
    other = foreigner_for(table)
    try:
        other.append(0)
        other.compact()
        if format != "delta":  # its clean-up by age is what the next test is about
            other.expire(4)
        table.append(EPOCHS, rows_of(EPOCHS, "ours", 3))
    finally:
        other.close()
    already += list(opened)
    assert marks_of(_rest(source, plan, already, 2)) == expected, "the scan shows the snapshot that it was planned on"
    assert table.marks()[EPOCHS, "ours"] == 3


@pytest.mark.parametrize("format", FORMATS)
def test_an_open_scan_ends_with_a_clear_error_when_its_files_are_gone(tmp_path: Path, format: str) -> None:
    table = _filled(tmp_path, format)
    source, plan, already, _ = _begun(table)
    other = foreigner_for(table)
    try:
        other.compact()
        other.append(0)
        other.expire(1)
    finally:
        other.close()
    _delete_what_an_engine_would(table, format)
    with pytest.raises((CorruptTable, SnapshotNotFound)) as caught:
        _rest(source, plan, already, 1)
    assert isinstance(caught.value, LaketierError)
    assert caught.value.where
    assert caught.value.fix


def _delete_what_an_engine_would(table: MarkedTable, format: str) -> None:
    """pyiceberg expires metadata only, where Spark and Trino delete the files too; local files have no expiry, so
    somebody's hand stands for it."""
    if format == "iceberg":
        from laketier_verification.faults.referenced import files

        live = files("iceberg", table.info).by_current
        for path in table.location.rglob("*.parquet"):
            if path.relative_to(table.location).as_posix() not in live:
                path.unlink()
    if format == "localfile":
        for path in table.location.glob("part=*/*.parquet"):
            path.unlink()
