"""Files that are traps: small, and made to become large or to never end."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zlib
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from depth import sizes
from hostile_values import long
from laketier.codecs import avro_files, expansion, parquet_pages
from laketier.codecs.avro_files import AvroFile
from laketier.codecs.decoding import BadValue
from laketier.codecs.expansion import BoundedStream, Bzip2Stream, expand
from laketier.connectors.files.readers import COMPRESSED
from laketier.spi import BadRecord, ConfigError
from landing import all_of, land_bytes, log_of, rows

MIB = 1024 * 1024


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    return tmp_path


def read(zone: Path, name: str, data: bytes, **options: Any) -> tuple[list[dict[str, Any]], list[BadRecord]]:
    land_bytes(zone, name, data)
    bad: list[BadRecord] = []
    return rows(
        log_of(zone, {key.replace("_", "-"): value for key, value in options.items()}), on_bad_record=bad.append
    ), bad


def avro(field: Any, count: int, data: bytes, codec: bytes = b"null") -> bytes:
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "v", "type": field}]}).encode()
    pairs = [(b"avro.schema", schema), (b"avro.codec", codec)]
    header = b"".join(long(len(text)) + text for pair in pairs for text in pair)
    return b"Obj\x01" + long(2) + header + long(0) + b"S" * 16 + long(count) + long(len(data)) + data + b"S" * 16


def test_a_line_without_an_end_takes_no_memory_and_the_next_is_read(zone: Path) -> None:
    before = pa.total_allocated_bytes()
    text = b'{"v": 1}\n' + b"x" * (40 * MIB) + b'\n{"v": 2}\n'
    options = {"format": "json", "columns.v": "int64", "max-record-bytes": MIB}
    found, bad = read(zone, "f.gz", gzip.compress(text, 1), **options)
    assert [row["v"] for row in found] == [1, 2]
    assert [(record.value, "line 2 of" in record.error, "max-record-bytes" in record.error) for record in bad] == [
        (None, True, True)
    ]
    assert pa.total_allocated_bytes() - before < 20 * MIB


def test_text_that_expands_beyond_bounds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "EXPANSION_FROM", MIB)
    stream = BoundedStream(io.BytesIO(b"x" * (3 * MIB)), size=1_000, expansion=2_000)
    assert len(stream.read(MIB)) == MIB
    with pytest.raises(BadValue, match=r"its 1,000 bytes expand to more than .* beyond max-expansion = 2,000"):
        stream.read(MIB)


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst", "lz4"])
def test_streams_that_are_joined_are_one_text_and_may_be_empty(zone: Path, ending: str) -> None:
    """As ``cat`` joins the parts of a day, of which some have nothing."""
    first, nothing, last = (_compressed(text, ending) for text in (b'{"id": 1}\n', b"", b'{"id": 2}\n'))
    cases = {
        first + nothing + last: [1, 2],
        nothing * 2 + first + last + nothing: [1, 2],
        first + nothing * 9 + last: [1, 2],
        nothing * 3: [],
        **{first + nothing + broken: None for broken in (last[:-1], last[: len(last) // 2], last[:3], b"no stream")},
    }
    for number, (data, ids) in enumerate(cases.items()):
        (zone / str(number) / "t").mkdir(parents=True)
        found, bad = read(zone / str(number), f"f.json.{ending}", data, format="json", **{"columns.id": "int64"})
        assert bool(bad) is (ids is None), f"{found} and no word of the rest"
        assert [row["id"] for row in found] in ([[], [1], [1, 2]] if ids is None else [ids])


class _Counted:
    """Counts the bytes that streams left over of what they were given, which are copied."""

    left = 0
    made = bz2.BZ2Decompressor

    def __init__(self) -> None:
        self._engine = _Counted.made()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        _Counted.left += len(found) if name == "unused_data" else 0
        return found


def test_many_small_streams_are_not_copied_again_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """As programs leave that compress each line: the rest of a whole MiB was copied for each of its lines."""
    data = bz2.compress(b'{"id": 1}\n') * 5000
    monkeypatch.setattr(expansion.bz2, "BZ2Decompressor", _Counted)
    stream = Bzip2Stream(io.BytesIO(data))
    text = b"".join(iter(lambda: stream.read(1000), b""))
    assert text == b'{"id": 1}\n' * 5000
    assert _Counted.left / 5000 < len(data) / 10, "for each stream on average"


def _compressed(text: bytes, ending: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, COMPRESSED[f".{ending}"]) as stream:
        stream.write(text)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz", "zstandard", "snappy"])
def test_a_block_that_expands_beyond_bounds_is_refused(codec: str) -> None:
    text = b"\0" * (4 * MIB)
    data = {
        "deflate": lambda: zlib.compress(text)[2:-4],
        "bzip2": lambda: bz2.compress(text),
        "xz": lambda: lzma.compress(text),
        "zstandard": lambda: pa.compress(text, codec="zstd", asbytes=True),
        "snappy": lambda: pa.compress(text, codec="snappy", asbytes=True) + zlib.crc32(text).to_bytes(4, "big"),
    }[codec]()
    assert expand(codec, data, 4 * MIB) == text
    with pytest.raises(BadValue, match="expands to"):
        expand(codec, data, MIB)


@pytest.mark.parametrize(
    ("field", "count", "data", "says"),
    [
        ("null", 2**60, b"", "claims 1,152,921,504,606,846,976 records"),
        ("long", 2**60, long(1), "claims 1,152,921,504,606,846,976 records"),
        ("string", 1, long(2**50) + b"x", "damaged"),
        ({"type": "array", "items": "long"}, 1, long(2**60), "damaged"),
        ("long", 1, long(1) * 2, "damaged"),
        ("long", -1, b"", "claims -1 records"),
    ],
)
def test_avro_whose_lengths_are_forged(zone: Path, field: Any, count: int, data: bytes, says: str) -> None:
    found, bad = read(zone, "f", avro(field, count, data), format="avro")
    assert found == []
    assert says in bad[0].error


def test_avro_whose_block_claims_more_than_the_file_has(zone: Path) -> None:
    data = avro("long", 1, long(1))
    forged = data[:-18] + long(2**50) + data[-17:]
    _, bad = read(zone, "f", forged, format="avro")
    assert "claims 1,125,899,906,842,624 bytes" in bad[0].error


def test_avro_whose_block_is_a_bomb(zone: Path) -> None:
    text = long(64 * MIB) + b"\0" * (64 * MIB)
    _, bad = read(
        zone, "f", avro("bytes", 1, zlib.compress(text)[2:-4], b"deflate"), format="avro", max_block_bytes=MIB
    )
    assert "expands to more than 1,048,576" in bad[0].error


def parquet(table: pa.Table, **how: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, write_statistics=False, **how)
    return sink.getvalue()


@pytest.mark.parametrize("declared", [{}, {"columns.t": "timestamp[us]"}])
def test_moments_of_int96_are_those_that_were_written(zone: Path, declared: dict[str, str]) -> None:
    """As Spark and Hive write them; as nanoseconds, pyarrow's choice, they come out as other ones without a word."""
    moments = [datetime(1, 1, 1), datetime(9999, 12, 31), datetime(2024, 1, 2, 3, 4, 5, 678901)]
    table = pa.table({"t": pa.array(moments, pa.timestamp("us"))})
    data = parquet(table, use_deprecated_int96_timestamps=True, store_schema=False)
    found, bad = read(zone, "f", data, format="parquet", **declared)
    assert ([row["t"] for row in found], bad) == (moments, [])


def test_parquet_whose_page_is_a_bomb(zone: Path) -> None:
    data = parquet(pa.table({"v": [b"\0" * (32 * MIB)]}), compression="zstd", use_dictionary=False)
    assert len(data) < 32_000
    found, bad = read(zone, "f", data, format="parquet", max_block_bytes=MIB)
    assert found == []
    assert "expands to 33,55" in bad[0].error
    assert "max-block-bytes = 1,048,576" in bad[0].error


@sizes("count", 200, 3_000)
def test_parquet_whose_dictionary_is_a_bomb_is_read_in_small_batches(
    zone: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    if count < 1024:
        monkeypatch.setattr(parquet_pages, "_BATCH_BYTES", 64 * MIB)
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * MIB]))
    land_bytes(zone, "f", parquet(pa.table({"v": texts}), compression="zstd", store_schema=False))
    log = log_of(zone, {})
    [split] = log.plan(all_of(log))
    sizes = [(batch.num_rows, batch.nbytes) for batch in log.read(split)]
    assert sum(read for read, _ in sizes) == count
    assert max(size for _, size in sizes) <= 1.1 * parquet_pages._BATCH_BYTES


@pytest.mark.parametrize("what", ["fixed length", "lists", "prefixes"])
def test_parquet_whose_values_stand_for_many_is_read_in_small_batches(
    zone: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Short texts beside one that is long are no bomb."""
    monkeypatch.setattr(parquet_pages, "_BATCH_BYTES", 8 * MIB)
    length = MIB // 8
    short = pa.array([0] * 200 + [1] * 9_800, pa.int32())
    texts = pa.DictionaryArray.from_arrays(short, pa.array(["x" * length, "y"]))
    column, how = {
        "fixed length": (pa.array([b"x" * length] * 200, pa.binary(length)), {}),
        "lists": (pa.ListArray.from_arrays(pa.array(range(0, 10_001, 10), pa.int32()), texts), {}),
        "prefixes": (
            pa.array(["x" * length] * 200),
            {"use_dictionary": False, "column_encoding": {"v": "DELTA_BYTE_ARRAY"}},
        ),
    }[what]
    data = parquet(pa.table({"v": column}), compression="zstd", store_schema=False, **how)
    assert len(data) < MIB
    land_bytes(zone, "f", data)
    log = log_of(zone, {})
    [split] = log.plan(all_of(log))
    sizes = [(batch.num_rows, batch.nbytes) for batch in log.read(split)]
    assert sum(rows for rows, _ in sizes) == len(column)
    assert max(size for _, size in sizes) <= 9 * MIB


def test_parquet_of_a_row_that_is_a_bomb(zone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_pages, "_BATCH_BYTES", 8 * MIB)
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 200, pa.int32()), pa.array(["x" * (MIB // 8)]))
    lists = pa.ListArray.from_arrays(pa.array([0, 200], pa.int32()), texts)
    found, bad = read(zone, "f", parquet(pa.table({"v": lists}), compression="zstd", store_schema=False))
    assert found == []
    assert "a row of row group 0 expands to" in bad[0].error


def arrow(table: pa.Table, **how: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**how)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_arrow_whose_buffers_claim_to_expand(zone: Path) -> None:
    data = arrow(pa.table({"v": [b"\0" * (32 * MIB)]}), compression="zstd")
    _, bad = read(zone, "f", data, format="arrow", max_block_bytes=MIB)
    assert "claim to expand to 33,554," in bad[0].error


def test_arrow_whose_dictionary_stands_for_too_much(zone: Path) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int8()), pa.array(["x" * MIB]))
    _, bad = read(zone, "f", arrow(pa.table({"v": texts})), format="arrow", max_block_bytes=MIB)
    assert "expand beyond bounds" in bad[0].error


def test_arrow_that_is_cut_off_between_messages_is_told(zone: Path) -> None:
    found, bad = read(zone, "f", arrow(pa.table({"v": [1]}))[:-8], format="arrow")
    assert found == [{"v": 1}]
    assert "it has no mark of its end: it was cut off" in bad[0].error


def test_arrow_that_claims_many_rows_of_nothing(zone: Path) -> None:
    table = pa.table({"v": pa.nulls(3), "w": [1, 2, 3]})
    data = arrow(table)
    assert data.count((3).to_bytes(8, "little")) >= 2
    forged = data.replace((3).to_bytes(8, "little"), (2**60).to_bytes(8, "little"))
    _, bad = read(zone, "f", forged, format="arrow")
    assert "rows" in bad[0].error


@pytest.mark.parametrize("deep", [65, 30_000])
def test_json_that_is_nested_too_deeply_to_find_columns_is_told(zone: Path, deep: int) -> None:
    """Arrow has a type for each level on its stack, and the process ends by a signal."""
    land_bytes(zone, "f", b'{"id": 1}\n{"a": ' + b"[" * deep + b"]" * deep + b"}\n")
    with pytest.raises(ConfigError, match="line 2: it is nested more than 64 deep"):
        log_of(zone, {"format": "json", "infer": True})


def test_text_with_brackets_is_not_nested(zone: Path) -> None:
    found, _ = read(zone, "f", json.dumps({"a": "[{" * 100 + '"\\'}).encode(), format="json", infer=True)
    assert found == [{"a": "[{" * 100 + '"\\'}]


@pytest.mark.parametrize(
    "header", [b"x" * 200_000, b'"' + b"x" * 200_000 + b'"', b"id," + b"id," * 50_000 + b"x"], ids=range(3)
)
def test_a_header_of_csv_that_can_t_be_read_is_a_bad_file(zone: Path, header: bytes) -> None:
    options = {"format": "csv", "columns.id": "int64"}
    found, bad = read(zone, "f", header + b"\n1\n", **options)
    assert found == []
    assert "header" in bad[0].error
    assert len(bad[0].error) < 2_000


def test_avro_records_of_no_bytes_are_read_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_files, "_CELLS", 100)
    fields = [{"name": f"c{at}", "type": "null"} for at in range(9)]
    data = avro({"type": "record", "name": "n", "fields": [*fields, {"name": "x", "type": "long"}]}, 500, long(1) * 500)
    batches = list(AvroFile.open(io.BytesIO(data), len(data), where="here").batches())
    assert sum(batch.num_rows for batch in batches) == 500
    assert max(batch.num_rows for batch in batches) < 10
