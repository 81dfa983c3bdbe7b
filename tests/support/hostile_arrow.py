"""Arrow streams of many types of columns, whose schemas somebody changed."""

from __future__ import annotations

import datetime
import decimal
import io
import random
import struct

import pyarrow as pa

MANY = pa.schema(
    [
        ("id", pa.int64()),
        ("f", pa.float64()),
        ("text", pa.large_string()),
        ("b", pa.binary()),
        ("moment", pa.timestamp("us", "UTC")),
        ("time", pa.time64("us")),
        ("large", pa.decimal256(50, 5)),
        ("fixed", pa.list_(pa.int32())),
        ("st", pa.struct([("a", pa.int64()), ("d", pa.date32())])),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("mm", pa.map_(pa.string(), pa.list_(pa.string()))),
        ("coded", pa.string()),
        ("bytes", pa.binary()),
        ("amount", pa.decimal128(9, 1)),
        ("view", pa.string()),
        ("none", pa.list_(pa.int64())),
    ]
)


def many_columns() -> dict[str, pa.Array]:
    """Of types that become those of `MANY`, by a cast or as they are."""
    day, moment = datetime.date(2024, 5, 1), datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
    two = pa.array([0, 1], pa.int8())
    amounts = pa.array([decimal.Decimal("1.1"), decimal.Decimal("2.2")], pa.decimal128(5, 1))
    return {
        "f": pa.array([1.5, None], pa.float32()),
        "text": pa.array(["a", ""]),
        "b": pa.array([b"abc", b"def"], pa.binary(3)),
        "moment": pa.array([moment, None], pa.timestamp("us", "UTC")),
        "time": pa.array([datetime.time(1), None], pa.time64("us")),
        "large": pa.array([decimal.Decimal("1.125"), None], pa.decimal256(40, 3)),
        "fixed": pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
        "st": pa.array([{"a": 1, "d": day}, None], pa.struct([("a", pa.int8()), ("d", pa.date32())])),
        "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int32())),
        "mm": pa.array([[("k", ["v", None])], None], pa.map_(pa.string(), pa.list_(pa.string()))),
        "coded": pa.DictionaryArray.from_arrays(two, pa.array(["x", "y"])),
        "bytes": pa.DictionaryArray.from_arrays(two, pa.array([b"abcd", b"efgh"], pa.binary(4))),
        "amount": pa.DictionaryArray.from_arrays(two, amounts),
        "view": pa.array(["x" * 20, "y"], pa.string_view()),
        "none": pa.FixedSizeListArray.from_arrays(pa.nulls(6), 3),
        "lists": pa.array([[1], []], pa.list_view(pa.int16())),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([1])),
        "union": pa.UnionArray.from_dense(two, pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["a"])]),
    }


COLUMNS = many_columns()


def all_types() -> bytes:
    """A stream of all columns of `MANY`, unharmed."""
    return stream_of(MANY.names[1:])


def stream_of(names: list[str]) -> bytes:
    table = pa.table({"id": [1, 2], **{name: COLUMNS[name] for name in names}})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def many_types(rng: random.Random) -> bytes:
    """A stream of some of these columns, whose schema somebody changed."""
    names = rng.sample([name for name in COLUMNS if name in MANY.names], rng.choice([1, 2, 4, 8]))
    if rng.random() < 0.1:
        names.append(rng.choice(["lists", "runs", "union"]))
    found = bytearray(stream_of(names))
    end = 8 + struct.unpack_from("<i", found, 4)[0] if rng.random() < 0.8 else len(found)
    for _ in range(rng.choice([1, 1, 2, 3, 5])):
        at = rng.randrange(8, end)
        match rng.randrange(4):
            case 0:
                found[at] = rng.randrange(256)
            case 1:
                found[at] ^= 1 << rng.randrange(8)
            case 2:
                at &= ~3
                numbers = [2**31 - 1, -1, 0, 1, 2, 3, 4, 8, -(2**31), 100, 2**24]
                found[at : at + 4] = struct.pack("<i", rng.choice(numbers))
            case _:
                found[at] = rng.choice([0, 1, 2, 3, 255, 127, 128])
    return bytes(found)
