"""The same work without laketier and without Spark: two warm processes that read Parquet and write with the library."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.dataset import SCHEMA, files_of
from benchmarks.session import CORES

BATCH_ROWS = 131_072
ROW_GROUP_ROWS = 1_048_576
LANCE_FILE_VERSION = "2.2"  # as laketier-lance writes


class Pool:
    """Two processes that stay, as Spark's workers do, so that no case pays for starting them."""

    def __init__(self, executor: ProcessPoolExecutor, source: Path) -> None:
        self._executor = executor
        files = files_of(source)
        self._halves = [files[i::CORES] for i in range(CORES)]

    def parquet(self, folder: Path, *, tuned: bool) -> None:
        """pyarrow's own writer, zstd: as it is, or with the encodings that our Parquet formats use."""
        jobs = [
            self._executor.submit(_parquet, half, str(folder / f"{index}.parquet"), tuned)
            for index, half in enumerate(self._halves)
        ]
        for job in jobs:
            job.result()

    def lance(self, folder: Path) -> None:
        """Fragments written by pylance in both processes, and one commit."""
        import lance

        jobs = [self._executor.submit(_lance, half, str(folder / "raw.lance")) for half in self._halves]
        fragments = [lance.FragmentMetadata.from_json(text) for job in jobs for text in job.result()]
        lance.LanceDataset.commit(str(folder / "raw.lance"), lance.LanceOperation.Overwrite(SCHEMA, fragments))


@contextmanager
def pool(source: Path) -> Iterator[Pool]:
    """The processes, ended again afterwards."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(CORES, mp_context=context) as executor:
        yield Pool(executor, source)


def count_parquet(folder: Path) -> int:
    """Rows in all Parquet files of ``folder``."""
    return sum(pq.read_metadata(path).num_rows for path in folder.rglob("*.parquet"))


def count_lance(folder: Path) -> int:
    """Rows of the dataset that `Pool.lance` wrote."""
    import lance

    return int(lance.dataset(str(folder / "raw.lance")).count_rows())


def _batches(files: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for path in files:
        with pq.ParquetFile(path, pre_buffer=True) as file:
            yield from file.iter_batches(BATCH_ROWS)


def _parquet(files: Sequence[str], out: str, tuned: bool) -> None:
    settings: dict[str, Any] = {}
    if tuned:
        from laketier.kit.parquet import encodings

        settings = encodings(SCHEMA)
    with pq.ParquetWriter(out, SCHEMA, compression="zstd", **settings) as writer:
        pending: list[pa.RecordBatch] = []
        for batch in _batches(files):
            pending.append(batch)
            if sum(part.num_rows for part in pending) >= ROW_GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(pending), row_group_size=ROW_GROUP_ROWS)
                pending = []
        if pending:
            writer.write_table(pa.Table.from_batches(pending), row_group_size=ROW_GROUP_ROWS)


def _lance(files: Sequence[str], uri: str) -> list[str]:
    import json

    from lance.fragment import write_fragments

    reader = pa.RecordBatchReader.from_batches(SCHEMA, _batches(files))
    fragments = write_fragments(
        reader, uri, mode="create", max_rows_per_file=ROW_GROUP_ROWS, data_storage_version=LANCE_FILE_VERSION
    )
    return [json.dumps(fragment.to_json()) for fragment in fragments]
