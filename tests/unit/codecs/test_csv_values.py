"""CSV's quotes: each line is read alike wherever it stands, and a value whose quote is not closed is no value."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from laketier.codecs.csv_values import CsvDecoder, header_of

SCHEMA = pa.schema([("a", pa.string()), ("b", pa.string())])
Line = tuple[str | None, ...] | None


def expected(line: str, delimiter: str) -> Line:
    """The values of a line, None for a bad one: a quote begins a value, or is a character like any other."""
    values: list[str | None] = []
    text, quoted, inside, begun = "", False, False, False
    at = 0
    while at < len(line):
        mark = line[at]
        if inside and line[at : at + 2] == '""':
            text, at = text + '"', at + 1
        elif inside:
            inside, text = mark != '"', text + ("" if mark == '"' else mark)
        elif mark == '"' and not begun:
            quoted = inside = True
        elif mark == delimiter:
            values.append(text if text or quoted else None)
            text, quoted, begun = "", False, False
            at += 1
            continue
        else:
            text += mark
        begun = True
        at += 1
    values.append(text if text or quoted else None)
    is_bad = inside or line.count('"') % 2 or len(values) != len(SCHEMA)
    return None if is_bad else tuple(values)


def decoded(lines: list[str], delimiter: str) -> list[Line]:
    found = CsvDecoder(SCHEMA, ("a", "b"), delimiter).decode([line.encode() for line in lines])
    rows: list[Line] = [None] * len(lines)
    for at, row in zip(found.index, found.rows.to_pylist(), strict=True):
        rows[at] = tuple(row.values())
    assert sorted([*found.index, *(one.index for one in found.bad)]) == list(range(len(lines)))
    return rows


@pytest.mark.parametrize("delimiter", [",", "|", "^", "-", "]", "\\", "\t"])
def test_quotes_mean_the_same_wherever_a_line_stands(delimiter: str) -> None:
    rng = random.Random(delimiter)
    parts = ['"', '""', delimiter, "x", f'"{delimiter}"']
    for _ in range(60):
        lines = ["".join(rng.choices(parts, k=rng.randrange(1, 9))) for _ in range(6)]
        lines = [line for line in lines if line.strip()] or ["x"]
        assert decoded(lines, delimiter) == [expected(line, delimiter) for line in lines], lines


def test_an_empty_value_behind_a_quoted_one_is_null_at_the_end_of_a_block_too() -> None:
    assert decoded(['"x",', '"y",'], ",") == [("x", None), ("y", None)]
    numbers = pa.schema([("a", pa.string()), ("b", pa.int64())])
    found = CsvDecoder(numbers, ("a", "b")).decode([b'"x",'])
    assert (found.rows.to_pylist(), found.bad) == ([{"a": "x", "b": None}], [])


def test_a_value_that_goes_on_in_the_next_line_is_bad_beside_a_quote_in_a_text() -> None:
    found = CsvDecoder(SCHEMA, ("a", "b")).decode([b'5" wide,"two', b"7,8"])
    assert found.rows.to_pylist() == [{"a": "7", "b": "8"}], "half of the value, as if it were whole"
    assert [(one.index, "a quote in it is not closed" in one.error) for one in found.bad] == [(0, True)]


def test_a_header_whose_quote_is_not_closed_is_refused() -> None:
    with pytest.raises(ValueError, match="a quote in its header is not closed"):
        header_of(b'id,"one\n', ",")
    assert header_of(b'id,"o""ne"\n', ",") == ["id", 'o"ne']
