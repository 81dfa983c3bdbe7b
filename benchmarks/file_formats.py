"""The file formats of the local format: writing and reading a table, beside the library alone on the same batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import lakes
from benchmarks.dataset import SCHEMA, batch
from benchmarks.measure import Case, Measured, interleaved, median
from benchmarks.report import Row, Section
from laketier.registry import configure, open_lake
from laketier.spi import ScanRequest, TableDescriptor, Token
from laketier.tiering import TieringRound, write_task
from laketier_localfile.file_formats.vortex import EDITION

BATCH_ROWS = 131_072
WAYS: Mapping[str, Mapping[str, str]] = {
    "parquet": {},
    "json": {"file-format": "json"},
    "json.gz": {"file-format": "json", "text-compression": "gzip"},
    "json.zst": {"file-format": "json", "text-compression": "zstd"},
    "csv": {"file-format": "csv"},
    "arrow": {"file-format": "arrow"},
    "vortex": {"file-format": "vortex"},
}
"""Files, and the options that make them."""


def run(rows: int, repetitions: int, work: Path, say: Callable[[str], None]) -> Sequence[Section]:
    """``rows`` rows into one table of each file format and out of it, in one process. Every case holds the same
    batches in memory."""
    batches = [batch(first, min(BATCH_ROWS, rows - first)) for first in range(0, rows, BATCH_ROWS)]
    writes = [Case(way, partial(_write, batches, way), partial(_check, rows)) for way in WAYS]
    writes += [Case(name, partial(_write_bare, write, batches)) for name, write in BARE_WRITES.items()]
    written = interleaved(writes, work / "scratch", repetitions, say)
    home = work / f"file-formats-{rows}"
    for way in WAYS:
        if not (home / way).exists():
            _write(batches, way, home / way)
        if not (home / "bare" / way).exists() and way in BARE_READS:
            (home / "bare" / way).parent.mkdir(parents=True, exist_ok=True)
            BARE_WRITES[BARE_OF[way]](batches, str(home / "bare" / way))
    reads = [Case(way, lambda _, way=way: _expect(_read(home / way), rows)) for way in WAYS]
    reads += [
        Case(f"{BARE_OF[way]}, {way}", lambda _, way=way: _expect(BARE_READS[way](str(home / "bare" / way)), rows))
        for way in BARE_READS
    ]
    read = interleaved(reads, work / "scratch", repetitions, say)
    note = "Rows per CPU-second of one core; the ratio is of CPU-seconds, to the library alone."
    return [
        Section(f"file formats: writing {rows:,} rows", _rows(written, rows, lambda way: BARE_OF[way]), [note]),
        Section(
            f"file formats: reading {rows:,} rows", _rows(read, rows, lambda way: f"{BARE_OF[way]}, {way}"), [note]
        ),
    ]


def _rows(cases: Mapping[str, Measured], rows: int, baseline: Callable[[str], str]) -> list[Row]:
    made: list[Row] = []
    cpu = {name: max(median(case.samples).cpu, 0.01) for name, case in cases.items()}
    for name, case in cases.items():
        row: Row = {"case": name, "cpu_s": round(cpu[name], 2), "rows/s_core": f"{rows / cpu[name]:,.0f}"}
        if name in WAYS and baseline(name) in cpu:
            row["of_the_library"] = round(cpu[name] / cpu[baseline(name)], 2)
        row["cpu_s min-max"] = f"{min(s.cpu for s in case.samples):.2f}-{max(s.cpu for s in case.samples):.2f}"
        if case.bytes:
            row["MB"] = round(case.bytes / 1e6, 1)
            row["bytes/row"] = round(case.bytes / rows, 1)
        made.append(row)
    return made


def _lake(way: str, folder: Path) -> Any:
    options = {f"lake.localfile.{key}": value for key, value in WAYS[way].items()}
    return open_lake(configure(lakes.options("localfile", folder) | options))


def _write(batches: Sequence[pa.RecordBatch], way: str, folder: Path) -> None:
    lake = _lake(way, folder)
    info = lake.storage.catalog().create_table(lake.config.table, TableDescriptor(SCHEMA))
    factory = lake.storage.tiering_factory(info)
    tiering = TieringRound(factory, token=Token(pipeline="bench", run="bench", epoch=0))
    tiering.begin()
    tiering.commit_messages([write_task(factory, batches)])


def _read(folder: Path) -> Iterator[pa.RecordBatch]:
    lake = _lake("parquet", folder)
    source = lake.storage.source(lake.storage.catalog().load_table(lake.config.table))
    plan = source.plan(ScanRequest())
    for split in plan.splits:
        yield from source.read(split, plan.schema)


def _check(rows: int, folder: Path) -> None:
    _expect(_read(folder), rows)


def _expect(batches: Iterator[pa.RecordBatch], rows: int) -> None:
    found = sum(each.num_rows for each in batches)
    if found != rows:
        raise AssertionError(f"{found} rows were read instead of {rows}")


def _write_bare(write: Callable[[Sequence[pa.RecordBatch], str], None], batches: Any, folder: Path) -> None:
    write(batches, str(folder / "bare"))


def _parquet(batches: Sequence[pa.RecordBatch], path: str) -> None:
    import pyarrow.parquet as pq

    from laketier.kit.parquet import encodings

    with pq.ParquetWriter(path, SCHEMA, compression="zstd", **encodings(SCHEMA)) as writer:
        for some in range(0, len(batches), 8):
            writer.write_table(pa.Table.from_batches(batches[some : some + 8]))


def _python_json(batches: Sequence[pa.RecordBatch], path: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for each in batches:
            file.writelines(json.dumps(row, default=str) + "\n" for row in each.to_pylist())


def _polars_json(batches: Sequence[pa.RecordBatch], path: str) -> None:
    import polars as pl

    with open(path, "wb") as file:
        for each in batches:
            pl.from_arrow(each).write_ndjson(file)


def _csv(batches: Sequence[pa.RecordBatch], path: str) -> None:
    import pyarrow.csv as arrow_csv

    with arrow_csv.CSVWriter(path, SCHEMA) as writer:
        for each in batches:
            writer.write_batch(each)


def _arrow(batches: Sequence[pa.RecordBatch], path: str) -> None:
    with pa.ipc.new_file(path, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for each in batches:
            writer.write_batch(each)


def _read_parquet(path: str) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        yield from file.iter_batches(BATCH_ROWS)


def _read_json(path: str) -> Iterator[pa.RecordBatch]:
    from pyarrow import json as arrow_json

    yield from arrow_json.read_json(path, arrow_json.ReadOptions(block_size=8 << 20)).to_batches()


def _read_csv(path: str) -> Iterator[pa.RecordBatch]:
    import pyarrow.csv as arrow_csv

    yield from arrow_csv.read_csv(path, arrow_csv.ReadOptions(block_size=8 << 20)).to_batches()


def _read_arrow(path: str) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(path) as file:
        reader = pa.ipc.open_file(file)
        yield from (reader.get_batch(number) for number in range(reader.num_record_batches))


def _vortex(batches: Sequence[pa.RecordBatch], path: str) -> None:
    import vortex

    options = vortex.io.VortexWriteOptions.default().with_edition(EDITION)
    options.write(pa.RecordBatchReader.from_batches(SCHEMA, batches), path)


def _read_vortex(path: str) -> Iterator[pa.RecordBatch]:
    import vortex

    yield from vortex.open(path).to_arrow(SCHEMA.names, schema=SCHEMA, batch_size=BATCH_ROWS)


BARE_WRITES: Mapping[str, Callable[[Sequence[pa.RecordBatch], str], None]] = {
    "pyarrow's Parquet": _parquet,
    "Polars' JSON": _polars_json,
    "Python's json": _python_json,
    "pyarrow's CSV": _csv,
    "pyarrow's IPC": _arrow,
    "vortex-data": _vortex,
}
BARE_OF = {
    "parquet": "pyarrow's Parquet",
    "json": "Polars' JSON",
    "json.gz": "Polars' JSON",
    "json.zst": "Polars' JSON",
    "csv": "pyarrow's CSV",
    "arrow": "pyarrow's IPC",
    "vortex": "vortex-data",
}
"""What writes the same without laketier; pyarrow writes no JSON."""
BARE_READS = {
    "parquet": _read_parquet,
    "json": _read_json,
    "csv": _read_csv,
    "arrow": _read_arrow,
    "vortex": _read_vortex,
}
"""The libraries' readers. pyarrow's infer what text is."""
