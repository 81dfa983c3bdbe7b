"""One table of values: what each becomes in each type, or that it is bad. All sources are run through it, and the page
``docs/reference/codecs.md`` shows it."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

UTC = datetime.UTC


class Bad:
    """The record is bad."""

    def __repr__(self) -> str:
        return "bad record"


BAD = Bad()


@dataclass(frozen=True)
class Case:
    """``json``: the value as it stands in a document, None where JSON has none. ``csv``: as it stands between
    delimiters. ``value``: what both become; ``csv_value`` where CSV differs."""

    kind: str
    json: str | None
    csv: str | None
    value: Any
    csv_value: Any = None
    note: str = ""

    @property
    def from_csv(self) -> Any:
        return self.value if self.csv_value is None else self.csv_value


def both(kind: str, text: str, value: Any, note: str = "") -> Case:
    """A number: the same in both."""
    return Case(kind, text, text, value, note=note)


def quoted(kind: str, text: str, value: Any, note: str = "") -> Case:
    """Text in JSON."""
    return Case(kind, f'"{text}"', text, value, note=note)


def _at(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


CASES = [
    both("double", "9007199254740992", 9007199254740992.0),
    both("double", "9007199254740993", BAD, "an integer that no double is"),
    both("double", "-9007199254740993", BAD),
    both("double", "9007199254740993.0", 9007199254740992.0, "a fraction takes the nearest"),
    both("double", "0.1", 0.1),
    both("double", "-0.0", -0.0),
    both("double", "1e308", 1e308),
    both("double", "1e400", BAD, "beyond all doubles"),
    both("double", "9" * 400, BAD),
    both("double", "1" * 5000, BAD),
    both("double", "1e-400", 0.0),
    both("double", "0x10", BAD),
    Case("double", "NaN", "NaN", math.nan, note="as many write it, though no JSON"),
    Case("double", "Infinity", "Infinity", math.inf),
    Case("double", '"1.5"', '"1.5"', BAD, 1.5, "text is no number; CSV's quotes say nothing of types"),
    Case("double", "true", "true", BAD),
    both("float", "16777216", 16777216.0),
    both("float", "16777217", BAD, "an integer that no float is"),
    both("float", "0.5", 0.5),
    both("float", "1e39", BAD),
    both("int64", "9223372036854775807", 9223372036854775807),
    both("int64", "9223372036854775808", BAD),
    both("int64", "-0", 0),
    both("int64", "1.0", BAD),
    both("int64", "1e3", BAD),
    both("int64", "0x10", BAD, "hexadecimal"),
    both("int64", "+1", BAD),
    Case("int64", "007", "007", BAD, 7, "no JSON"),
    Case("int64", '"1"', '"1"', BAD, 1),
    Case("int64", "true", "true", BAD),
    Case("int64", '""', '""', BAD),
    Case("int64", "null", "", None),
    both("int64", "1" * 5000, BAD),
    both("int8", "127", 127),
    both("int8", "128", BAD),
    both("uint64", "18446744073709551615", 18446744073709551615),
    both("uint64", "-1", BAD),
    both("bool", "true", True),
    Case("bool", "1", "1", BAD, True, "CSV knows no other booleans"),
    Case("bool", '"true"', "yes", BAD),
    quoted("string", "NA", "NA"),
    Case("string", '""', '""', ""),
    Case("string", "1", "1", BAD, "1", "a number is no text"),
    Case("string", '"\\u0000"', "\x00", "\x00"),
    Case("string", '"\\ud800"', None, BAD, note="half of a pair"),
    Case("string", '"\\ud83d\\ude00"', "😀", "😀"),
    Case("string", '"a\tb"', None, BAD, note="a control character that is not escaped"),
    both("decimal128(5, 2)", "1.25", Decimal("1.25")),
    both("decimal128(5, 2)", "1.250", Decimal("1.25")),
    both("decimal128(5, 2)", "1.255", BAD, "more digits than the scale"),
    both("decimal128(5, 2)", "1000.00", BAD),
    both("decimal128(5, 2)", "1e2", Decimal("100.00")),
    both("decimal128(5, 2)", "NaN", BAD),
    both("decimal128(38, 0)", "9007199254740993", Decimal(9007199254740993)),
    both("decimal128(38, 0)", "1e999999", BAD),
    quoted("timestamp[us]", "2024-05-01T10:00:00", datetime.datetime(2024, 5, 1, 10)),
    quoted("timestamp[us]", "2024-05-01 10:00:00.123456", datetime.datetime(2024, 5, 1, 10, 0, 0, 123456)),
    quoted("timestamp[us]", "2024-05-01T10:00:00Z", BAD, "a zone in a column without one"),
    quoted("timestamp[us]", "2024-05-01T10:00:00+02:00", BAD),
    quoted("timestamp[us]", "2024-05-01T10:00:00.123456789", BAD, "more digits than the unit"),
    quoted("timestamp[us]", "2024-02-30T10:00:00", BAD),
    quoted("timestamp[us]", "2016-12-31T23:59:60", BAD, "a leap second"),
    quoted("timestamp[us]", "99999-01-01T00:00:00", BAD),
    quoted("timestamp[ns]", "9999-01-01T00:00:00", BAD, "beyond what nanoseconds count"),
    quoted("timestamp[us, UTC]", "2024-05-01T10:00:00+02:00", _at(2024, 5, 1, 8)),
    quoted("timestamp[us, UTC]", "2024-10-27T02:30:00+02:00", _at(2024, 10, 27, 0, 30), "the hour that comes twice"),
    quoted("timestamp[us, UTC]", "2024-10-27T02:30:00+01:00", _at(2024, 10, 27, 1, 30)),
    quoted("timestamp[us, UTC]", "2024-05-01T10:00:00", BAD, "which moment is not known"),
    quoted("timestamp[us, UTC]", "2024-05-01T10:00:00+25:00", BAD),
    Case("timestamp[us, UTC]", "1714557600", "1714557600", BAD, note="a number is no time"),
    quoted("date32", "2024-02-29", datetime.date(2024, 2, 29)),
    quoted("date32", "2023-02-29", BAD),
    quoted("date32", "2024-02-29T00:00:00", BAD),
    Case("date32", "19782", "19782", BAD),
    quoted("time64[us]", "10:00:01.5", datetime.time(10, 0, 1, 500000)),
    quoted("time64[us]", "24:00:00", BAD),
    quoted("time64[us]", "10", BAD),
    quoted("time32[s]", "10:00:01.5", BAD, "more digits than the unit"),
    Case("list<double>", "[9007199254740993]", None, BAD),
    Case("list<int64>", "[1, null]", None, [1, None]),
    Case("list<int64>", "{}", None, BAD),
    Case("list<timestamp[us]>", '["2024-05-01T10:00:00Z"]', None, BAD),
    Case("struct<a: float>", '{"a": 16777217}', None, BAD),
    Case("struct<a: int64>", '{"a": null}', None, {"a": None}),
    Case("struct<a: int64>", '{"a": 1, "a": 2}', None, BAD, note="a key twice"),
]

DOCUMENTS = [
    (b'{"v": 1}', 1),
    (b' {"v": 1}\t', 1),
    (b"{}", None),
    (b'{"v": 1, "v": 2}', BAD),
    (b'{"v": 1, "\\u0076": 2}', BAD),
    (b'{"v": 1}{"v": 2}', BAD),
    (b'{"v": 1} null', BAD),
    (b"null", BAD),
    (b"[1]", BAD),
    (b"1", BAD),
    (b'{"v": 1', BAD),
    (b'{"v": 1,}', BAD),
    (b"{'v': 1}", BAD),
    (b'{"v": /* */ 1}', BAD),
    (b'{"v": 1}\x00', BAD),
    (b'\x00{"v": 1}', BAD),
    (b'{"w": "\xff"}', BAD),
    (b'{"w": ' + b"[" * 100_000, BAD),
]
"""Whole documents with one column ``v`` of int64, and fields that are no columns passed over."""
