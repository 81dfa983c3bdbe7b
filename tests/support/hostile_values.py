"""``python tests/support/hostile_values.py [--seed N] [--count M]``: bytes that somebody made to do harm, through every
decoder of records and every format of files in a landing zone. Prints the seed and how many there were.

Each must become rows or a bad record, whatever stands beside it, in bounded memory and time; each bad record must fit
the table of dead letters. Everything is made from the seed, so that a failure can be looked at again.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from hostile_arrow import MANY, all_types, many_types
from laketier.codecs.arrow_values import ArrowDecoder, RawDecoder
from laketier.codecs.avro_values import AvroDecoder
from laketier.codecs.csv_values import CsvDecoder
from laketier.codecs.decoding import Decoder
from laketier.codecs.json_values import JsonDecoder
from laketier.codecs.protobuf_values import ProtobufDecoder
from laketier.dead_letters.table import dead_letter_batch
from laketier.spi import BadRecord, ConfigError
from landing import all_of, land_bytes, log_of

MEMORY = 6 * 1024**3
SECONDS = 300
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("p", pa.decimal128(10, 2)),
        ("l", pa.list_(pa.float32())),
    ]
)
FLAT = pa.schema([field for field in SCHEMA if field.name != "l"])
AVRO = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "d", "type": ["null", "double"]},
        {"name": "s", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "p", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]}},
        {"name": "f", "type": {"type": "fixed", "name": "f", "size": 3}},
        {"name": "l", "type": {"type": "array", "items": "float"}},
        {"name": "m", "type": {"type": "map", "values": "int"}},
    ],
}
NUMBERS = ["0", "-0", "-0.0", "1e400", "-1e400", "1e-400", "9007199254740993", "16777217", "9" * 400, "1" * 5000]
NUMBERS += [
    "NaN",
    "Infinity",
    "-Infinity",
    "007",
    "+1",
    "0x1F",
    "1_000",
    "1.",
    ".5",
    "1e",
    "true",
    "null",
    "1e999999999",
]
TEXTS = ['""', '"\\ud800"', '"\\u0000"', '"\x00"', '"2024-05-01T10:00:00Z"', '"2024-05-01"', '"99999-12-31T00:00:00Z"']
TEXTS += ['"2016-12-31T23:59:60Z"', '"' + "x" * 70_000 + '"', '"1.255"', '"\U0001f600"', '"\u202e"', '"\x1b[31m"']
NESTS = ["[" * 10, "[" * 100_000, '{"a":' * 100_000, "[1,[2,[3]]]", "{}", "[]", "[9007199254740993]", "[null]", "[[]]"]


def record(rng: random.Random) -> dict[str, Any]:
    import datetime
    import decimal

    moment = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
    return {
        "id": rng.randrange(100),
        "d": rng.random(),
        "s": rng.choice(["a", "ü", ""]),
        "at": moment + datetime.timedelta(seconds=rng.randrange(10**6)),
        "p": decimal.Decimal(rng.randrange(10**6)).scaleb(-2),
        "l": [0.5] * rng.randrange(3),
        "u": "12345678-1234-5678-1234-567812345678",
        "e": rng.choice("AB"),
        "f": b"abc",
        "m": {"k": rng.randrange(9)},
    }


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "at": row["at"].isoformat(), "p": str(row["p"]), "f": "abc"}


def long(value: int) -> bytes:
    """As Avro writes it."""
    value = (value << 1) ^ (value >> 63)
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def mutated(rng: random.Random, data: bytes) -> bytes:
    """With some of its bytes changed, as one who wants to do harm would."""
    found = bytearray(data)
    for _ in range(rng.choice([0, 1, 1, 2, 5, 20])):
        at = rng.randrange(len(found) + 1)
        match rng.randrange(8):
            case 0:
                found[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del found[at:]
            case 2:
                found[at:at] = rng.choice([long(2**60), long(-(2**63)), long(2**31), b"\xff" * 9, b"\x80" * 20])
            case 3:
                found[at : at + 8] = struct.pack("<q", rng.choice([2**62, -1, 2**31, -(2**63), 2**40, 0]))
            case 4:
                found[at : at + 4] = struct.pack("<i", rng.choice([2**31 - 1, -1, 0, 2**24]))
            case 5:
                del found[at : at + rng.randrange(1, 9)]
            case 6:
                found[at:at] = found[: rng.randrange(64)]
            case _:
                found[at : at + 1] = bytes([found[at] ^ (1 << rng.randrange(8))]) if at < len(found) else b"\x00"
    return bytes(found)


def json_value(rng: random.Random) -> bytes:
    if rng.random() < 0.4:
        return mutated(rng, json.dumps(plain(record(rng))).encode())
    parts = [
        f'"{name}": {rng.choice(rng.choice([NUMBERS, TEXTS, NESTS]))}'
        for name in rng.sample([*SCHEMA.names, "more"], 3)
    ]
    if rng.random() < 0.1:
        parts.append(parts[0])
    return ("{" + ", ".join(parts) + "}").encode("utf-8", "surrogatepass")


def csv_value(rng: random.Random) -> bytes:
    row = plain(record(rng))
    cells = [str(row[name]) for name in FLAT.names]
    for _ in range(rng.randrange(4)):
        cells[rng.randrange(len(cells))] = rng.choice([*NUMBERS, *TEXTS, '"', "\r", "\ufeff", "a\rb", '"a"b', 'a""b'])
    line = ",".join(cells).encode("utf-8", "surrogatepass")
    return (mutated(rng, line) if rng.random() < 0.3 else line).replace(b"\n", b"")


def avro_value(rng: random.Random) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, AVRO, record(rng))
    return mutated(rng, sink.getvalue())


def arrow_value(rng: random.Random) -> bytes:
    return mutated(rng, arrow_file(rng))


def arrow_table(rng: random.Random) -> pa.Table:
    return pa.Table.from_pylist([{name: record(rng)[name] for name in SCHEMA.names} for _ in range(3)], schema=SCHEMA)


def arrow_file(rng: random.Random) -> bytes:
    table, sink = arrow_table(rng), io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=rng.choice([None, "zstd", "lz4"]))
    make = rng.choice([pa.ipc.new_stream, pa.ipc.new_file])
    with make(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def parquet_file(rng: random.Random) -> bytes:
    sink = io.BytesIO()
    version = rng.choice(["1.0", "2.0"])
    pq.write_table(arrow_table(rng), sink, compression=rng.choice(["none", "zstd", "gzip"]), data_page_version=version)
    return mutated(rng, sink.getvalue())


def avro_file(rng: random.Random) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, AVRO, [record(rng) for _ in range(3)], codec=rng.choice(["null", "deflate", "bzip2", "xz"]))
    return mutated(rng, sink.getvalue())


def protobuf() -> tuple[bytes, bytes]:
    """The descriptors of a message, and one."""
    from google.protobuf import descriptor_pb2, timestamp_pb2
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="h.proto", syntax="proto2", dependency=["google/protobuf/timestamp.proto"]
    )
    message = file.message_type.add(name="Row")
    for number, (name, kind, label) in enumerate(
        [
            ("id", kinds.TYPE_SINT64, kinds.LABEL_OPTIONAL),
            ("s", kinds.TYPE_STRING, kinds.LABEL_OPTIONAL),
            ("d", kinds.TYPE_DOUBLE, kinds.LABEL_REPEATED),
            ("at", kinds.TYPE_MESSAGE, kinds.LABEL_OPTIONAL),
            ("u", kinds.TYPE_UINT64, kinds.LABEL_OPTIONAL),
        ],
        1,
    ):
        field = message.field.add(name=name, number=number, type=kind, label=label)
        if kind == kinds.TYPE_MESSAGE:
            field.type_name = ".google.protobuf.Timestamp"
    known = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(known)
    pool = DescriptorPool()
    pool.Add(known)
    pool.Add(file)
    row = GetMessageClass(pool.FindMessageTypeByName("Row"))(id=-5, s="text", d=[1.5, 2.5], u=2**64 - 1)
    row.at.seconds = 1714557600
    return descriptor_pb2.FileDescriptorSet(file=[known, file]).SerializeToString(), row.SerializeToString()


DESCRIPTORS, MESSAGE = protobuf()
Values = Callable[[random.Random], bytes]
RECORDS: dict[str, tuple[Decoder, Values, bytes]] = {
    "json": (JsonDecoder(SCHEMA), json_value, b'{"id": 1}'),
    "json, strict": (JsonDecoder(SCHEMA, unknown_fields=False), json_value, b'{"id": 1}'),
    "csv": (CsvDecoder(FLAT, tuple(FLAT.names)), csv_value, b"1,1.5,a,2024-05-01T10:00:00Z,1.25"),
    "avro": (AvroDecoder.of(json.dumps(AVRO), where="here"), avro_value, b""),
    "protobuf": (ProtobufDecoder.of(DESCRIPTORS, "Row", where="here"), lambda rng: mutated(rng, MESSAGE), MESSAGE),
    "arrow": (ArrowDecoder(SCHEMA), arrow_value, b""),
    "arrow of many types": (ArrowDecoder(MANY), many_types, b""),
    "raw": (RawDecoder(pa.schema([("value", pa.binary())])), lambda rng: rng.randbytes(9), b"x"),
}


def compressed(rng: random.Random) -> bytes:
    lines = b"\n".join(json_value(rng).replace(b"\n", b"") for _ in range(4))
    return mutated(rng, rng.choice([gzip.compress, bz2.compress])(lines))


FILES: dict[str, tuple[str, str, Values]] = {
    "parquet file": ("parquet", "f", parquet_file),
    "arrow file": ("arrow", "f", arrow_value),
    "arrow file of many types": ("arrow", "f", many_types),
    "avro file": ("avro", "f", avro_file),
    "json file": ("json", "f", lambda rng: b"\n".join(json_value(rng) for _ in range(4))),
    "csv file": ("csv", "f", lambda rng: b"id,d,s,at,p\n" + b"\n".join(csv_value(rng) for _ in range(4))),
    "json.gz file": ("json", "f.gz", compressed),
    "json.bz2 file": ("json", "f.bz2", compressed),
}
COLUMNS = {f"columns.{field.name}": str(field.type).replace("tz=", "") for field in SCHEMA}


def check_records(name: str, rng: random.Random) -> None:
    decoder, make, good = RECORDS[name]
    values = [make(rng) for _ in range(rng.choice([1, 3, 8]))]
    good = good or unharmed(name)
    place = rng.randrange(len(values) + 1)
    values.insert(place, good)
    decoded = decoder.decode(values)
    bad = [one.index for one in decoded.bad]
    assert bad == sorted(set(bad)), "each once, in order"
    assert not set(bad) & set(decoded.index), "a row or a bad record"
    assert name.startswith("arrow") or set(bad) | set(decoded.index) == set(range(len(values))), (
        "nothing is passed over"
    )
    assert len(decoded.index) == decoded.rows.num_rows
    assert place in set(decoded.index), f"what stands beside it is read, and here gave {list(decoded.bad)}"
    decoded.rows.validate(full=True)
    hold([BadRecord(bucket="0", offset=one.index, error=one.error, value=values[one.index]) for one in decoded.bad])


def unharmed(name: str) -> bytes:
    rng = random.Random(1)
    if name == "arrow":
        return arrow_file(rng)
    if name == "arrow of many types":
        return all_types()
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, AVRO, record(rng))
    return sink.getvalue()


def check_file(name: str, rng: random.Random, folder: Path) -> None:
    kind, file, make = FILES[name]
    (folder / "t").mkdir(parents=True)
    land_bytes(folder, file, make(rng))
    read = {"format": kind, "extra-columns": "ignore"} | ({} if kind == "avro" else COLUMNS)
    if kind == "csv":
        del read["columns.l"]
    try:
        log = log_of(folder, read)
    except ConfigError:  # no schema in it: told to the user
        return
    bad: list[BadRecord] = []
    for split in log.plan(all_of(log)):
        for batch in log.read(split, on_bad_record=bad.append):
            batch.validate(full=True)
    hold(bad)


def hold(bad: list[BadRecord]) -> None:
    dead_letter_batch("t", bad).validate(full=True)


def cases(seed: int, count: int) -> Iterator[tuple[int, str]]:
    names = [*RECORDS, *FILES]
    for number in range(count):
        yield number, names[number % len(names)]


def run(seed: int, some: list[tuple[int, str]]) -> None:
    """In a process of its own, with bounded memory and time."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.alarm(SECONDS)
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as work:
        for number, name in some:
            os.pwrite(3, f"{number} {name}".ljust(60).encode(), 0)
            rng = random.Random(f"{seed} {number}")
            if name in RECORDS:
                check_records(name, rng)
            else:
                check_file(name, rng, Path(work, str(number)))


def search(seed: int, count: int, at_once: int = 500) -> list[str]:
    """What went wrong."""
    wrong = []
    everything = list(cases(seed, count))
    for start in range(0, count, at_once):
        with tempfile.TemporaryFile() as place:
            child = os.fork()
            if not child:
                code = 1
                try:
                    os.dup2(place.fileno(), 3)
                    run(seed, everything[start : start + at_once])
                    code = 0
                except BaseException as error:  # noqa: BLE001 - told by its parent
                    print(f"{type(error).__name__}: {error}", file=sys.stderr)
                os._exit(code)
            _, status = os.waitpid(child, 0)
            if status:
                case = os.pread(place.fileno(), 60, 0).decode().strip()
                ended = os.waitstatus_to_exitcode(status)
                wrong.append(f"seed {seed}, case {case}: " + ("failed" if ended == 1 else f"ended by signal {-ended}"))
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32), help="of all that is made")
    parser.add_argument("--count", type=int, default=16_000, help="how many values and files (16,000)")
    parser.add_argument("--only", type=int, help="this case alone, in this process")
    arguments = parser.parse_args()
    if arguments.only is not None:
        os.open("/dev/null", os.O_RDWR)
        name = dict(cases(arguments.seed, arguments.only + 1))[arguments.only]
        rng = random.Random(f"{arguments.seed} {arguments.only}")
        with tempfile.TemporaryDirectory() as work:
            check_records(name, rng) if name in RECORDS else check_file(name, rng, Path(work))
        return 0
    wrong = search(arguments.seed, arguments.count)
    print(f"seed {arguments.seed}: {arguments.count} values and files through {len(RECORDS)} decoders of records and")
    print(f"{len(FILES)} formats of files; {len(wrong)} did harm")
    for each in wrong:
        print(each)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
