"""The life of a table whose files stay open across epochs, as it is recorded, and what must be there after a power cut.

One process writes epochs into files that stay open, and ends some of them in place; another comes after it, finishes by
copy what it left, and ends its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.json

from laketier import open_writer
from laketier.registry import configure, open_lake
from laketier.spi import ScanRequest, TableNotFound
from laketier.tiering.epochs import EpochWriter
from laketier_conformance.lake import read_plan
from laketier_verification.powercut.scenario import announcing_syncs
from laketier_verification.powercut.trace import traced

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("part", pa.string())])
LIVES = (3, 2)
"""Epochs that each process writes."""
ROWS = 4
_MOST_ROWS = 10
"""Of a file: the third epoch ends one, and begins another."""


def config(folder: Path, file_format: str) -> dict[str, str]:
    """The table's."""
    return {
        "lake.format": "localfile",
        "lake.warehouse": str(folder),
        "lake.table": "db.t",
        "lake.pipeline": "p",
        "lake.localfile.manifests-per-rollup": "2",
        "lake.localfile.file-format": file_format,
        "lake.localfile.open-files": "true",
        "lake.localfile.target-file-rows": str(_MOST_ROWS),
    }


def ids_of(epochs: int) -> list[int]:
    """Of the first epochs."""
    return [epoch * 100 + row for epoch in range(epochs) for row in range(ROWS)]


def write(writer: EpochWriter, epoch: int) -> str:
    """An epoch."""
    ids = ids_of(epoch + 1)[-ROWS:]
    rows = pa.record_batch([ids, [f"p{each}" for each in ids]], schema=SCHEMA)
    return writer.write(epoch, [rows]).outcome.value


def recorded(folder: Path, file_format: str, without: str = "") -> tuple[str, tuple[object, ...]]:
    """The warehouse, and what the processes did below it: an epoch is a step. ``without``: a sync that is left out."""
    warehouse = folder / "warehouse"
    warehouse.mkdir(parents=True)
    marks = folder / "marks"
    arguments = ["-m", "laketier_verification.powercut.open_files", str(marks), without, str(warehouse), file_format]
    return str(warehouse), tuple(traced(arguments, warehouse, marks, {"PYTHONDONTWRITEBYTECODE": "1"}))


def judge(folder: Path, acknowledged: int, file_format: str) -> None:
    """Raises AssertionError, or what laketier raises, unless the table holds the epochs that were acknowledged, and of
    the next one all or nothing; unless a successor goes on rightly; and unless other readers then see all rows."""
    keys = config(folder, file_format)
    found = _seen(keys)
    allowed = [ids_of(acknowledged), ids_of(acknowledged + 1)]
    assert found in allowed, f"before anything is mended: {found}, not {allowed[0]}"
    with open_writer(keys, SCHEMA) as writer:
        begun = writer.next_epoch
        assert begun * ROWS == len(found), f"the next epoch is {begun}, and {len(found)} rows are there"
        write(writer, begun)
    assert _seen(keys) == ids_of(begun + 1)
    for epochs in range(1, begun + 1):
        assert _seen(keys, epochs) is not None, f"snapshot {epochs}"
    plain = sorted(each for path in _plain(folder) for each in _read(path, file_format))
    assert plain == ids_of(begun + 1), f"to plain readers: {plain}"


def _seen(keys: dict[str, str], snapshot_id: int | None = None) -> list[int]:
    lake = open_lake(configure(keys))
    try:
        source = lake.source(lake.load_table())
    except TableNotFound:
        return []
    return sorted(read_plan(source, source.plan(ScanRequest(snapshot_id=snapshot_id)))["id"].to_pylist())


def _plain(folder: Path) -> Iterator[Path]:
    return (folder / "db" / "t").glob("part-*")


def _read(path: Path, file_format: str) -> list[int]:
    found = pa.json.read_json(path) if file_format == "json" else pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    ids: list[int] = found["id"].to_pylist()
    return ids


def main() -> None:
    """``MARKS WITHOUT FOLDER FORMAT``: write ``begin N`` and ``ack N`` into the file MARKS."""
    marks = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)

    def say(text: str) -> None:
        os.write(marks, f"{text}\n".encode())

    announcing_syncs(say, sys.argv[2])
    epoch = 0
    for number, epochs in enumerate(LIVES):
        writer = open_writer(config(Path(sys.argv[3]), sys.argv[4]), SCHEMA)
        for _ in range(epochs):
            say(f"begin {epoch}")
            say(f"ack {epoch} {write(writer, epoch)}")
            epoch += 1
        if number == len(LIVES) - 1:
            writer.close()


if __name__ == "__main__":
    main()
