"""Each tuning reaches the file: it is, byte by byte, what pyarrow makes with that argument, and not what it makes
without."""

from __future__ import annotations

import io
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.kit.parquet import GrowingParquetFile, ParquetSettings, encodings
from laketier.kit.parquet_tuning import Dictionary, PageVersion, ParquetTuning
from laketier.spi import ConfigError

ROWS = 30_000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS)),
        "amount": pa.array([(i * 7919) % ROWS / 8 for i in range(ROWS)]),
        "name": pa.array([f"name-{(i * 31) % ROWS}" * 9 for i in range(ROWS)]),
        "price": pa.array([Decimal(i) / 100 for i in range(ROWS)], pa.decimal128(9, 2)),
    }
)
AS_BEFORE = {"compression": "zstd", "store_decimal_as_integer": True, **encodings(TABLE.schema)}
CHOSEN = AS_BEFORE["column_encoding"]
CASES: dict[str, tuple[ParquetTuning, dict[str, Any]]] = {
    "parquet_dictionary": (
        ParquetTuning(parquet_dictionary=Dictionary.ALL), {"use_dictionary": True, "column_encoding": None}
    ),
    "parquet_dictionary none": (ParquetTuning(parquet_dictionary=Dictionary.NONE), {"use_dictionary": False}),
    "parquet_dictionary_bytes": (ParquetTuning(parquet_dictionary_bytes=9999), {"dictionary_pagesize_limit": 9999}),
    "parquet_encodings": (
        ParquetTuning(parquet_encodings="amount=byte_stream_split, name=DELTA_BYTE_ARRAY"),
        {
            "use_dictionary": ["price"],
            "column_encoding": {**CHOSEN, "amount": "BYTE_STREAM_SPLIT", "name": "DELTA_BYTE_ARRAY"},
        },
    ),
    "parquet_encodings beside dictionaries of all": (
        ParquetTuning(parquet_encodings="id=PLAIN", parquet_dictionary=Dictionary.ALL),
        {"use_dictionary": ["amount", "name", "price"], "column_encoding": {"id": "PLAIN"}},
    ),
    "parquet_bloom_filters": (
        ParquetTuning(parquet_bloom_filters="id,name"),
        {"bloom_filter_options": {name: {"ndv": 1 << 20, "fpp": 0.05} for name in ("id", "name")}},
    ),
    "parquet_bloom_distinct": (
        ParquetTuning(parquet_bloom_filters="id", parquet_bloom_distinct=99),
        {"bloom_filter_options": {"id": {"ndv": 99, "fpp": 0.05}}},
    ),
    "parquet_bloom_false_positives": (
        ParquetTuning(parquet_bloom_filters="id", parquet_bloom_distinct=999, parquet_bloom_false_positives=0.5),
        {"bloom_filter_options": {"id": {"ndv": 999, "fpp": 0.5}}},
    ),
    "parquet_page_bytes": (ParquetTuning(parquet_page_bytes=4096), {"data_page_size": 4096}),
    "parquet_page_rows": (ParquetTuning(parquet_page_rows=1000), {"max_rows_per_page": 1000}),
    "parquet_page_batch_rows": (
        ParquetTuning(parquet_page_batch_rows=7, parquet_page_bytes=4096),
        {"write_batch_size": 7, "data_page_size": 4096},
    ),
    "parquet_page_version": (ParquetTuning(parquet_page_version=PageVersion.V2), {"data_page_version": "2.0"}),
    "parquet_page_index": (ParquetTuning(parquet_page_index=True), {"write_page_index": True}),
    "parquet_page_checksums": (ParquetTuning(parquet_page_checksums=True), {"write_page_checksum": True}),
    "parquet_decimals_as_integers": (
        ParquetTuning(parquet_decimals_as_integers=False), {"store_decimal_as_integer": False}
    ),
    "parquet_content_chunks": (ParquetTuning(parquet_content_chunks=True), {"use_content_defined_chunking": True}),
}  # fmt: skip


def written(settings: ParquetSettings, table: pa.Table = TABLE) -> bytes:
    sink = pa.BufferOutputStream()
    file = GrowingParquetFile(sink, table.schema, settings=settings)
    file.write(table)
    file.close()
    return bytes(sink.getvalue())


def by_pyarrow(**arguments: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, TABLE.schema, **{**AS_BEFORE, **arguments}) as writer:
        writer.write_table(TABLE, row_group_size=ROWS)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("case", list(CASES))
def test_a_tuning_reaches_the_file(case: str) -> None:
    tuning, arguments = CASES[case]
    data = written(tuning)
    assert data == by_pyarrow(**arguments)
    assert data != written(ParquetSettings())
    assert pq.read_table(io.BytesIO(data)).equals(TABLE)


@pytest.mark.parametrize("case", list(CASES))
def test_duckdb_reads_each(case: str, tmp_path: Path) -> None:
    (tmp_path / "f.parquet").write_bytes(written(CASES[case][0]))
    found = duckdb.sql(f"SELECT * FROM '{tmp_path}/f.parquet' ORDER BY id").to_arrow_table()
    assert found.cast(TABLE.schema).equals(TABLE)


def test_each_tuning_is_tried() -> None:
    ours = {field.name for field in fields(ParquetTuning)} - {field.name for field in fields(ParquetSettings)}
    assert {case.partition(" ")[0] for case in CASES} | {"parquet_sort_by"} == ours


def test_without_any_files_are_as_before() -> None:
    assert written(ParquetTuning()) == written(ParquetSettings()) == by_pyarrow()


def test_rows_are_sorted_as_the_footer_says() -> None:
    table = pa.table({"a": [1, None, 1, 2], "b": ["x", "y", "z", None]})
    data = written(ParquetTuning(parquet_sort_by="a desc, b"), table)
    assert pq.read_table(io.BytesIO(data)).to_pylist() == [
        {"a": 2, "b": None}, {"a": 1, "b": "x"}, {"a": 1, "b": "z"}, {"a": None, "b": "y"}
    ]  # fmt: skip
    told = pq.read_metadata(io.BytesIO(data)).row_group(0).sorting_columns
    assert told == pq.SortingColumn.from_ordering(table.schema, [("a", "descending"), ("b", "ascending")])


@pytest.mark.parametrize("option", ["parquet_sort_by", "parquet_bloom_filters", "parquet_encodings"])
def test_a_column_that_is_not_there_is_named(option: str) -> None:
    value = "nmae=PLAIN" if option == "parquet_encodings" else "nmae"
    with pytest.raises(ConfigError, match=f"{option.replace('_', '-')} names 'nmae'") as error:
        written(ParquetTuning(**{option: value}))
    assert "id, amount, name, price" in str(error.value.why)


def test_what_is_no_encoding_and_no_share_is_refused() -> None:
    with pytest.raises(ValueError, match="name=RLE, and encodings are PLAIN"):
        ParquetTuning(parquet_encodings="name=RLE")
    with pytest.raises(ValueError, match="between 0 and 1"):
        ParquetTuning(parquet_bloom_false_positives=1.0)
