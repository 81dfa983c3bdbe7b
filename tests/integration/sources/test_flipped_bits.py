"""A bit of a Parquet page that is another one makes a damaged file, and no other rows."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from followed import FOLLOWED
from laketier.connectors.folder import ParquetFolder
from laketier.spi import BadRecord, CorruptTable, LakeSource, ScanRequest
from laketier.tables.scan import scan
from landing import land_bytes, log_of, rows

ROWS = [{"id": number, "s": f"text {number}"} for number in range(4)]
Read = Callable[[], list[Any]]


def in_a_landing_zone(folder: Path) -> tuple[Path, Read]:
    land_bytes(folder, "a.parquet", _parquet())
    log = log_of(folder, {"format": "parquet", "columns.id": "int64", "columns.s": "string"}, ledger=str(folder / "l"))

    def read() -> list[Any]:
        bad: list[BadRecord] = []
        found = rows(log, on_bad_record=bad.append)
        if bad:
            raise CorruptTable(bad[0].error)
        return found

    return folder / "t" / "a.parquet", read


def in_a_folder(folder: Path) -> tuple[Path, Read]:
    (folder / "a.parquet").write_bytes(_parquet())
    source = ParquetFolder(str(folder), schema=pa.schema([("id", pa.int64()), ("s", pa.string())]))
    return folder / "a.parquet", lambda: _scanned(source)


def in_a_table_of(name: str) -> Callable[[Path], tuple[Path, Read]]:
    def made(folder: Path) -> tuple[Path, Read]:
        table = FOLLOWED[name](folder).create()
        table.append(1, 2, 3)
        source = table.lake.source(table.lake.load_table())
        [file] = [path for path in folder.rglob("*.parquet") if "checkpoint" not in path.name]
        # As Spark writes it.
        pq.write_table(pq.ParquetFile(file).read(), file, write_page_checksum=True, compression="none")
        return file, lambda: _scanned(source)

    return made


def _scanned(source: LakeSource) -> list[Any]:
    _, batches = scan(source, ScanRequest())
    return [row for batch in batches for row in batch.to_pylist()]


def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(ROWS, pa.schema([("id", pa.int64()), ("s", pa.string())]))
    pq.write_table(table, sink, write_page_checksum=True, compression="none")
    return bytes(sink.getvalue())


PLACES = {
    "landing zone": in_a_landing_zone,
    "folder": in_a_folder,
    "delta": in_a_table_of("delta"),
    "iceberg": in_a_table_of("iceberg"),
}


@pytest.mark.parametrize("place", PLACES)
def test_no_bit_of_a_page_changes_a_row(place: str, tmp_path: Path) -> None:
    file, read = PLACES[place](tmp_path)
    whole, right, status = file.read_bytes(), read(), file.stat()
    assert len(right) > 2
    for at in itertools.islice(_pages(file), 0, None, 1 if "folder" in place else 5):  # a table's take longer
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        file.write_bytes(damaged)
        _keep_time(file, status)
        try:
            found = read()
        except CorruptTable:
            continue
        assert found == right, f"bit {at % 8} of byte {at}"


@pytest.mark.parametrize("place", PLACES)
def test_a_page_of_a_kind_that_is_passed_over_takes_no_row_with_it(place: str, tmp_path: Path) -> None:
    file, read = PLACES[place](tmp_path)
    data, status = bytearray(file.read_bytes()), file.stat()
    kind = pq.ParquetFile(file).metadata.row_group(0).column(0).data_page_offset + 1
    assert data[kind - 1] == 0x15, "the header begins with the kind of its page"
    data[kind] = 0x02  # an index page, which no reader knows
    file.write_bytes(data)
    _keep_time(file, status)
    with pytest.raises(CorruptTable, match="pages hold 0 rows, and its footer claims"):
        read()


def _pages(file: Path) -> Iterator[int]:
    footer = pq.ParquetFile(file).metadata
    for number in range(footer.num_columns):
        column = footer.row_group(0).column(number)
        start = column.dictionary_page_offset or column.data_page_offset
        yield from range(start, start + column.total_compressed_size)


def _keep_time(file: Path, status: Any) -> None:
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
