"""The bucket functions once more, slow and row by row, written from the specifications and not from our code."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

M32 = 0xFFFFFFFF


def signed(value: int) -> int:
    return value - 2**32 if value & 0x80000000 else value


def rotl(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & M32


def mix_k(k: int) -> int:
    return rotl(k * 0xCC9E2D51 & M32, 15) * 0x1B873593 & M32


def mix_h(h: int, k: int) -> int:
    return (rotl(h ^ mix_k(k), 13) * 5 + 0xE6546B64) & M32


def fmix(h: int) -> int:
    h = (h ^ h >> 16) * 0x85EBCA6B & M32
    h = (h ^ h >> 13) * 0xC2B2AE35 & M32
    return h ^ h >> 16


def murmur(data: bytes, *, flink: bool) -> int:
    h = 42 if flink else 0
    body = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:body]):
        h = mix_h(h, word)
    tail = data[body:]
    if flink:
        for byte in tail:
            h = mix_h(h, (byte - 256 if byte > 127 else byte) & M32)
    else:
        h ^= mix_k(int.from_bytes(tail, "little"))
    return fmix(h ^ len(data))


def math_utils_murmur(code: int) -> int:
    h = signed(fmix(mix_h(0, code) ^ 4))
    return 0 if h == -(2**31) else abs(h)


def leb128(value: int, bits: int) -> bytes:
    value &= 2**bits - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def unscaled(value: Decimal, scale: int) -> int:
    # From the digits: scaleb would round to the context's 28.
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits))) * 10 ** (scale + int(exponent))
    return -number if sign else number


def big_endian(value: int) -> bytes:
    length = 1
    while not -(2 ** (8 * length - 1)) <= value < 2 ** (8 * length - 1):
        length += 1
    return value.to_bytes(length, "big", signed=True)


def days(value: date) -> int:
    return (value - date(1970, 1, 1)).days


def micros_of_day(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def micros(value: datetime) -> int:
    zero = datetime(1970, 1, 1, tzinfo=UTC if value.tzinfo else None)
    return (value - zero) // timedelta(microseconds=1)


def fluss_field(value: Any, kind: pa.DataType) -> bytes:
    if pt.is_boolean(kind):
        return bytes([value])
    if pt.is_int8(kind):
        return struct.pack("<b", value)
    if pt.is_int16(kind):
        return struct.pack("<h", value)
    if pt.is_int32(kind):
        return leb128(value, 32)
    if pt.is_int64(kind):
        return leb128(value, 64)
    if pt.is_float32(kind):
        return struct.pack("<f", value)
    if pt.is_float64(kind):
        return struct.pack("<d", value)
    if pt.is_date(kind):
        return leb128(days(value), 32)
    if pt.is_time(kind):
        return leb128(micros_of_day(value) // 1000, 32)
    if pt.is_timestamp(kind):
        at = micros(value)
        millis = leb128(at // 1000, 64)
        return millis if kind.unit in ("s", "ms") else millis + leb128(at % 1000 * 1000, 32)
    if pt.is_decimal(kind):
        number = unscaled(value, kind.scale)
        if kind.precision <= 18:
            return leb128(number, 64)
        value = big_endian(number)
    data = value.encode() if isinstance(value, str) else value
    return leb128(len(data), 32) + data


def fluss_bucket(row: Sequence[Any], kinds: Sequence[pa.DataType], count: int) -> int:
    key = b"".join(fluss_field(value, kind) for value, kind in zip(row, kinds, strict=True))
    return math_utils_murmur(murmur(key, flink=True)) % count


def paimon_row(row: Sequence[Any], kinds: Sequence[pa.DataType]) -> bytes:
    header = (len(row) + 63 + 8) // 64 * 8
    out = bytearray(header + 8 * len(row))
    for i, (value, kind) in enumerate(zip(row, kinds, strict=True)):
        slot = header + 8 * i
        if value is None:
            out[(i + 8) // 8] |= 1 << (i + 8) % 8
        elif pt.is_timestamp(kind):
            at = micros(value)
            if kind.unit in ("s", "ms"):
                struct.pack_into("<q", out, slot, at // 1000)
            else:
                struct.pack_into("<Q", out, slot, len(out) << 32 | at % 1000 * 1000)
                out += struct.pack("<q", at // 1000)
        elif pt.is_decimal(kind) and kind.precision > 18:
            data = big_endian(unscaled(value, kind.scale))
            struct.pack_into("<Q", out, slot, len(out) << 32 | len(data))
            out += data.ljust(16, b"\0")
        elif isinstance(value, str | bytes):
            data = value.encode() if isinstance(value, str) else value
            if len(data) <= 7:
                out[slot : slot + 8] = data.ljust(7, b"\0") + bytes([len(data) | 0x80])
            else:
                struct.pack_into("<Q", out, slot, len(out) << 32 | len(data))
                out += data + b"\0" * (-len(data) % 8)
        else:
            if pt.is_decimal(kind):
                form, value = "<q", unscaled(value, kind.scale)
            elif pt.is_date(kind):
                form, value = "<i", days(value)
            elif pt.is_time(kind):
                form, value = "<i", micros_of_day(value) // 1000
            else:
                form = {"bool": "<?", "int8": "<b", "int16": "<h", "int32": "<i", "int64": "<q", "float": "<f"}.get(
                    str(kind), "<d"
                )
            struct.pack_into(form, out, slot, value)
    return bytes(out)


def paimon_bucket(row: Sequence[Any], kinds: Sequence[pa.DataType], count: int) -> int:
    return abs(signed(murmur(paimon_row(row, kinds), flink=True))) % count


def iceberg_hash(value: Any, kind: pa.DataType) -> int:
    if pt.is_decimal(kind):
        data = big_endian(unscaled(value, kind.scale))
    elif isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
    elif pt.is_timestamp(kind):
        data = struct.pack("<q", micros(value))
    elif pt.is_date(kind):
        data = struct.pack("<q", days(value))
    elif pt.is_time(kind):
        data = struct.pack("<q", micros_of_day(value))
    else:
        data = struct.pack("<q", value)
    return murmur(data, flink=False)


def iceberg_bucket(row: Sequence[Any], kinds: Sequence[pa.DataType], count: int) -> int:
    return (iceberg_hash(row[0], kinds[0]) & 0x7FFFFFFF) % count


def java_hash(text: str) -> int:
    h = 0
    for (unit,) in struct.iter_unpack("<H", text.encode("utf-16-le")):
        h = (31 * h + unit) & M32
    return h


def hudi_text(value: Any, kind: pa.DataType) -> str:
    if pt.is_boolean(kind):
        return "true" if value else "false"
    if pt.is_date(kind):
        return str(days(value))
    if pt.is_time(kind):
        return str(micros_of_day(value) // 1000)
    if pt.is_decimal(kind):
        return format(value, "f")
    return str(value)


def hudi_bucket(row: Sequence[Any], kinds: Sequence[pa.DataType], count: int) -> int:
    h = 1
    for value, kind in zip(row, kinds, strict=True):
        if value is None:
            element = java_hash("__null__") if len(row) == 1 else 0
        else:
            element = java_hash(hudi_text(value, kind))
        h = (31 * h + element) & M32
    return (h & 0x7FFFFFFF) % count
