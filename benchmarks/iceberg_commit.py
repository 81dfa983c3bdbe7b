"""What an Iceberg commit costs as snapshots add up, without and with expiry in the commit.

    python benchmarks/iceberg_commit.py [--epochs 1000] [--keep 20]

One row and one data file per epoch, SQLite catalog on a local disk, everything flushed to the device. Times are
medians of `open` + `publish` over the last epochs before each mark; staging the data file is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from laketier.spi import (
    CommitterInitContext,
    LakeStorageConfig,
    TableDescriptor,
    TablePath,
    Token,
    Watermark,
    WriterInitContext,
    new_attempt_id,
)
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.storage import IcebergStorage

MARKS = (10, 100, 300, 1000)
WINDOW = 5


def commits(warehouse: Path, epochs: int, *, expire: bool, keep: int) -> list[tuple[float, float]]:
    """Wall and CPU milliseconds of each commit."""
    storage = IcebergStorage(LakeStorageConfig(str(warehouse), IcebergOptions(expire_in_commit=expire)))
    properties = {"history.expire.max-snapshot-age-ms": "0", "history.expire.min-snapshots-to-keep": str(keep)}
    wanted = TableDescriptor(pa.schema([("id", pa.int64()), ("s", pa.string())]), properties=properties)
    catalog, path = storage.catalog(), TablePath("db", "t")
    catalog.create_table(path, wanted)
    times = []
    for epoch in range(epochs):
        factory = storage.tiering_factory(catalog.load_table(path))
        writer = factory.create_writer(WriterInitContext(new_attempt_id()))
        writer.write(pa.record_batch({"id": [epoch], "s": ["x"]}))
        result = writer.complete()
        commit_id = new_attempt_id()
        start, cpu = time.perf_counter(), time.process_time()
        committer = factory.create_committer(CommitterInitContext(commit_id))
        state = committer.open()
        state.watermark("p")
        committer.publish(state, [result], Watermark(Token("p", "run", epoch), commit_id))
        times.append(((time.perf_counter() - start) * 1000, (time.process_time() - cpu) * 1000))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--keep", type=int, default=20, help="snapshots that expiry keeps")
    arguments = parser.parse_args()
    marks = [mark for mark in MARKS if mark <= arguments.epochs]
    print(f"| one commit, at epoch | {' | '.join(str(mark) for mark in marks)} | slope per 100 snapshots |")
    print(f"|---|{'---|' * (len(marks) + 1)}")
    for label, expire in (("every snapshot kept", False), (f"expired in the commit, {arguments.keep} kept", True)):
        with tempfile.TemporaryDirectory() as folder:
            times = commits(Path(folder), marks[-1], expire=expire, keep=arguments.keep)
        for kind, index in (("wall", 0), ("CPU", 1)):
            shown = [statistics.median(t[index] for t in times[max(mark - WINDOW, 0) : mark]) for mark in marks]
            slope = (shown[-1] - shown[0]) / (marks[-1] - marks[0]) * 100
            cells = " | ".join(f"{value:.0f} ms" for value in shown)
            print(f"| {label}, {kind} | {cells} | {slope:.1f} ms |", flush=True)


if __name__ == "__main__":
    main()
