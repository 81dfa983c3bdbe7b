from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from laketier.kit.parquet_reader import naming_damage, read_batches
from laketier.spi import CorruptTable

MIB = 1024 * 1024
NUMBERS = pa.struct([("n", pa.int32()), ("of", pa.list_(pa.int32(), 2))])
SCRIPT = Path(__file__).parents[2] / "support" / "flipped_bits.py"


def test_batches_of_wide_rows_are_small_and_those_of_narrow_rows_large(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    size = 140_000
    columns = {
        "id": pa.array(range(size), pa.int64()),
        "wide.text": pc.utf8_lpad(pc.cast(pa.array(range(size)), pa.string()), 1000, "0"),
        "numbers": pa.array([{"n": i, "of": [i, i]} for i in range(size)], NUMBERS),
        "nested": pa.array([{"text": "x", "n": i} for i in range(size)]),
    }
    pq.write_table(pa.table(columns), file, use_dictionary=False)
    with pq.ParquetFile(file) as parquet:
        for wanted, least, most in (
            (["id"], 131_072, 131_072),
            (["numbers"], 131_072, 131_072),
            (["nested"], 20_000, 40_000),  # what has no width counts as wide as all that is there
            (["wide.text"], 20_000, 40_000),
            (["id", "wide.text", "numbers", "nested"], 20_000, 40_000),
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
    with pytest.raises(CorruptTable, match=r"gone\.arrow: a data file is missing"), naming_damage("gone.arrow"):
        pa.ipc.open_file(str(tmp_path / "gone.arrow"))
    with pytest.raises(OSError, match="time-out"), naming_damage(str(file)):
        raise OSError("curlCode: 28, time-out was reached")
    with pytest.raises(CorruptTable, match="Index 5 out of bounds"), naming_damage(str(file)):
        pa.DictionaryArray.from_arrays(pa.array([5]), pa.array(["a"]), safe=False).cast(pa.string())
    with pytest.raises(CorruptTable, match="flatbuffer"), naming_damage(str(file)):
        raise OSError("Verification of flatbuffer-encoded Footer failed.")


@pytest.mark.parametrize("settings", [{}, {"compression": "none", "use_dictionary": False}, {"write_page_index": True}])
def test_a_bit_of_another_value_is_damage_whatever_pyarrow_says(tmp_path: Path, settings: dict[str, object]) -> None:
    """Nothing else is raised, and the process goes on: what pyarrow has no way to raise ends it."""
    rows = {
        "id": pa.array(range(100), pa.int64()),
        "name": [None if i % 7 == 3 else f"row {i % 13}" for i in range(100)],
        "day": pa.array(range(100), pa.date32()),
        "of": [[i, None] if i % 3 else None for i in range(100)],
    }
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table(rows), file, row_group_size=40, **settings)
    told = subprocess.run([sys.executable, SCRIPT, file], capture_output=True, text=True, check=False)
    assert told.returncode == 0, f"a reader of damaged files ended with {told.returncode}: {told.stderr}"


def test_a_time_out_of_a_library_of_its_own_is_no_damage() -> None:
    with pytest.raises(TimeoutError), naming_damage("rows.parquet"):
        raise TimeoutError
    with pytest.raises(pa.lib.ArrowMemoryError), naming_damage("rows.parquet"):
        raise pa.lib.ArrowMemoryError("malloc of size 1 failed")
    with pytest.raises(CorruptTable, match="upgrade pyarrow"), naming_damage("rows.parquet"):
        raise OSError("Not yet implemented: Unsupported encoding.")
