"""No record does harm: what any bytes make a decoder raise is a bad record, and what stands beside it is read."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import hostile_values
from hostile_values import RECORDS
from laketier.codecs.arrow_values import ArrowDecoder
from laketier.codecs.avro_schema import schema_of_text
from laketier.codecs.decoding import Decoded, Decoder
from laketier.codecs.json_values import JsonDecoder
from laketier.codecs.protobuf_values import ProtobufDecoder
from laketier.codecs.said import said, shown
from laketier.dead_letters.table import dead_letter_batch
from laketier.spi import BadRecord, ConfigError, StorageError

SCHEMA = pa.schema([("v", pa.int64())])


def search(seed: int, count: int) -> None:
    """In a new process: a fork of this one would have whatever memory the tests before took, of the little that is
    allowed."""
    command = [sys.executable, hostile_values.__file__, f"--seed={seed}", f"--count={count}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1_800)
    assert done.returncode == 0, f"{shlex.join(command)} says:\n{done.stdout}{done.stderr}"


def test_hostile_values_and_files_do_no_harm() -> None:
    search(seed=20, count=128)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_many_hostile_values_and_files_do_no_harm(seed: int) -> None:
    search(seed=seed, count=3_200)


@dataclass(frozen=True)
class Raising(Decoder):
    """Raises over each value that begins with an exclamation mark."""

    schema: pa.Schema
    error: type[BaseException]

    def read(self, values: Sequence[bytes]) -> Decoded:
        if any(value[:1] == b"!" for value in values):
            raise self.error("!")
        return Decoded(
            pa.record_batch([pa.array(map(int, values), pa.int64())], schema=self.schema), range(len(values))
        )


@pytest.mark.parametrize(
    "error",
    [
        ValueError,
        RecursionError,
        MemoryError,
        pa.ArrowMemoryError,
        OverflowError,
        UnicodeError,
        pa.ArrowInvalid,
        SystemError,
        IndexError,
        TypeError,
        EOFError,
        AssertionError,
        StopIteration,
    ],
)
def test_whatever_a_value_makes_a_library_raise_is_its_own(error: type[BaseException]) -> None:
    values = [b"%d" % at if at not in (0, 7, 99) else b"!" for at in range(100)]
    decoded = Raising(SCHEMA, error).decode(values)
    assert [one.index for one in decoded.bad] == [0, 7, 99]
    assert (
        decoded.rows.column(0).to_pylist() == list(decoded.index) == [at for at in range(100) if at not in (0, 7, 99)]
    )


@pytest.mark.parametrize("error", [StorageError("no registry"), ImportError("fastavro"), OSError(24, "too many files")])
def test_what_is_no_values_fault_is_raised(error: Exception) -> None:
    class Broken(JsonDecoder):
        def read(self, values: Sequence[bytes]) -> Decoded:
            raise error

    with pytest.raises(type(error)):
        Broken(SCHEMA).decode([b"{}", b"{}"])


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.int64(), pa.decimal128(38, 0), pa.string()])
@pytest.mark.parametrize("digits", [400, 5_000, 100_000])
def test_a_number_of_many_digits_is_a_bad_record(kind: pa.DataType, digits: int) -> None:
    good = b'{"v": null}'
    decoded = JsonDecoder(pa.schema([("v", kind)])).decode([good, b'{"v": ' + b"1" * digits + b"}", good])
    assert [one.index for one in decoded.bad] == [1]
    assert decoded.rows.num_rows == 2
    assert len(decoded.bad[0].error) < 2_000


def test_a_value_nested_beside_a_large_number_is_a_bad_record() -> None:
    deep = b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b', "v": 9007199254740992}'
    decoded = JsonDecoder(pa.schema([("v", pa.float64())])).decode([b'{"v": 1}', deep])
    assert [(one.index, one.error) for one in decoded.bad] == [(1, "it is nested too deeply")]


@pytest.mark.parametrize("scale", [2_097_152_002, -5_000])
@pytest.mark.parametrize("nested", [False, True])
def test_a_decimal_of_a_scale_that_none_has_is_a_bad_record(scale: int, nested: bool) -> None:
    """Arrow takes any scale of a message, and its cast reads beyond its table of powers."""
    forged, wanted = pa.decimal128(10, scale), pa.decimal128(10, 2)
    column = pa.nulls(1, pa.list_(forged) if nested else forged)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("p", column.type)])) as writer:
        writer.write_batch(pa.record_batch([column], ["p"]))
    schema = pa.schema([("p", pa.list_(wanted) if nested else wanted)])
    assert "no decimal has that scale" in ArrowDecoder(schema).decode([sink.getvalue().to_pybytes()]).bad[0].error


def test_a_value_that_is_too_long_is_bad_and_names_the_option() -> None:
    decoded = JsonDecoder(SCHEMA, record_bytes=9).decode([b'{"v": 1}', b'{"v":   1}'])
    assert decoded.rows.num_rows == 1
    assert decoded.bad[0].error == "it has 10 bytes, more than max-record-bytes = 9 allows"


def test_text_of_protobuf_that_is_not_utf8_is_a_bad_record() -> None:
    decoder, _, good = RECORDS["protobuf"]
    assert isinstance(decoder, ProtobufDecoder)
    decoded = decoder.decode([good, b"\x12\x01\xff", b"\x22\x02\x10\x05", good, b"\x22\x06\x10\x80\x94\xeb\xdc\x03"])
    assert [one.index for one in decoded.bad] == [1, 4], "not UTF-8; 1,000,000,000 nanoseconds"
    assert decoded.rows.num_rows == 3


def nested(levels: int) -> Any:
    kind: Any = "long"
    for _ in range(levels):
        kind = {"type": "array", "items": kind}
    return kind


@pytest.mark.parametrize(
    ("field", "why"),
    [
        (["null", "r"], "contains itself"),
        ({"type": "array", "items": "r"}, "contains itself"),
        ({"type": "map", "values": {"type": "array", "items": "r"}}, "contains itself"),
        ({"type": "array", "items": "null"}, "take no bytes"),
        ({"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}}, "take no bytes"),
        ({"type": "array", "items": {"type": "record", "name": "e", "fields": []}}, "take no bytes"),
        (nested(100), "more than 64 deep"),
        ("nothing", "names a type 'nothing'"),
    ],
)
def test_avro_schemas_that_keep_a_reader_busy_are_refused(field: Any, why: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": field}]}
    with pytest.raises(ConfigError, match=why):
        schema_of_text(json.dumps(schema), "here")


def test_an_avro_schema_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        schema_of_text('{"type":' * 100_000, "here")


def test_dead_letters_hold_any_record() -> None:
    records = [
        BadRecord(bucket="0", offset=1, error="half a pair \ud800", value=b"\xff", at=2**63 - 1),
        BadRecord(bucket="0", offset=2, error="x", value=None, at=-(2**63)),
        BadRecord(bucket="0", offset=3, error="y", value=b"", key=b"\x00", at=1_700_000_000_000),
    ]
    batch = dead_letter_batch("t", records)
    batch.validate(full=True)
    assert batch.column("error")[0].as_py() == "half a pair \\ud800"
    assert [moment is None for moment in batch.column("at").to_pylist()] == [True, True, False]


def test_what_is_said_is_text_that_is_shown_and_not_obeyed() -> None:
    assert said(ValueError("\x1b[31m \ud800 \u202e")) == r"\x1b[31m \ud800 \u202e"
    assert len(shown("x" * 1_000_000)) < 1_100
    assert said(MemoryError()) == "it needs more memory than there is (out of memory)"
