from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from laketier.kit.parquet_reader import naming_damage, read_batches
from laketier.spi import CorruptTable

MIB = 1024 * 1024


def test_batches_of_wide_rows_are_small_and_those_of_narrow_rows_large(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    size = 140_000
    columns = {
        "id": pa.array(range(size), pa.int64()),
        "wide.text": pc.utf8_lpad(pc.cast(pa.array(range(size)), pa.string()), 1000, "0"),
        "nested": pa.array([{"text": "x", "n": i} for i in range(size)]),
    }
    pq.write_table(pa.table(columns), file, use_dictionary=False)
    with pq.ParquetFile(file) as parquet:
        for wanted, least, most in (
            (["id"], 131_072, 131_072),
            (["nested"], 131_072, 131_072),
            (["wide.text"], 20_000, 40_000),
            (["id", "wide.text", "nested"], 20_000, 40_000),
        ):
            batches = list(read_batches(parquet, wanted))
            assert least <= batches[0].num_rows <= most, f"{wanted}: {batches[0].num_rows} rows in a batch"
            assert max(batch.nbytes for batch in batches) < 36 * MIB
            assert pa.Table.from_batches(batches).equals(pa.table(columns).select(wanted))


def test_no_columns_and_no_rows_are_read_in_one_batch_or_none(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": list(range(10))}), file)
    with pq.ParquetFile(file) as parquet:
        assert [batch.num_rows for batch in read_batches(parquet, [])] == [10]
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), file)
    with pq.ParquetFile(file) as parquet:
        assert sum(batch.num_rows for batch in read_batches(parquet, ["id"])) == 0


def test_damage_within_a_file_is_named_and_what_the_storage_says_passes(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": list(range(10_000))}), file, compression="zstd")
    content = bytearray(file.read_bytes())
    content[4:100] = b"\xff" * 96
    file.write_bytes(content)
    with pytest.raises(CorruptTable, match=r"rows\.parquet: a data file is damaged"), naming_damage(str(file)):
        pq.ParquetFile(file).read()
    with pytest.raises(OSError, match="time-out"), naming_damage(str(file)):
        raise OSError("curlCode: 28, time-out was reached")
    with pytest.raises(CorruptTable, match="Index 5 out of bounds"), naming_damage(str(file)):
        pa.DictionaryArray.from_arrays(pa.array([5]), pa.array(["a"]), safe=False).cast(pa.string())
    with pytest.raises(CorruptTable, match="flatbuffer"), naming_damage(str(file)):
        raise OSError("Verification of flatbuffer-encoded Footer failed.")
